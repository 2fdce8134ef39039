package main

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

type franz struct {
	bootstrap string
	admin     *kadm.Client
}

func openFranz(bootstrap string) (library, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(bootstrap))
	if err != nil {
		return nil, err
	}
	return &franz{bootstrap, kadm.NewClient(client)}, nil
}

func (f *franz) close() { f.admin.Close() }

func soon() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), limit)
}

func (f *franz) produce(topic, codec string, records []record, idempotent bool, partition int) error {
	compression := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}[codec]
	options := []kgo.Opt{
		kgo.SeedBrokers(f.bootstrap), kgo.ProducerBatchCompression(compression), kgo.ProducerBatchMaxBytes(maxMessage),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
	}
	if !idempotent {
		options = append(options, kgo.DisableIdempotentWrite())
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	defer client.Close()
	batch := make([]*kgo.Record, len(records))
	for i, r := range records {
		batch[i] = &kgo.Record{Topic: topic, Partition: int32(partition), Key: r.key, Value: r.value}
		for _, h := range r.headers {
			batch[i].Headers = append(batch[i].Headers, kgo.RecordHeader{Key: h.name, Value: h.value})
		}
	}
	ctx, cancel := soon()
	defer cancel()
	return client.ProduceSync(ctx, batch...).FirstErr()
}

func (f *franz) read(topic string, count int, from position) ([]record, error) {
	start := kgo.NewOffset().At(from.offset)
	switch {
	case from.timestamp > 0:
		start = kgo.NewOffset().AfterMilli(from.timestamp)
	case from.offset == 0:
		start = kgo.NewOffset().AtStart()
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(f.bootstrap), kgo.FetchMaxWait(100*time.Millisecond),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: start}}))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ctx, cancel := soon()
	defer cancel()
	var found []record
	for len(found) < count {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return nil, fmt.Errorf("after %d records: %w", len(found), err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			got := record{offset: r.Offset, key: r.Key, value: r.Value}
			for _, h := range r.Headers {
				got.headers = append(got.headers, header{h.Key, h.Value})
			}
			found = append(found, got)
		})
	}
	return found, nil
}

type franzMember struct {
	*progress
	client *kgo.Client
}

func (f *franz) member(group, topic string) (member, error) {
	m := &franzMember{progress: newProgress()}
	owned := map[int32]bool{}
	show := func(change map[string][]int32, has bool) {
		for _, partition := range change[topic] {
			owned[partition] = has
		}
		var now []int
		for partition, has := range owned {
			if has {
				now = append(now, int(partition))
			}
		}
		m.assign(now)
	}
	gained := func(_ context.Context, _ *kgo.Client, change map[string][]int32) { show(change, true) }
	lost := func(_ context.Context, _ *kgo.Client, change map[string][]int32) { show(change, false) }
	client, err := kgo.NewClient(kgo.SeedBrokers(f.bootstrap), kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.SessionTimeout(6*time.Second), kgo.HeartbeatInterval(300*time.Millisecond),
		kgo.FetchMaxWait(100*time.Millisecond), kgo.OnPartitionsAssigned(gained), kgo.OnPartitionsRevoked(lost), kgo.OnPartitionsLost(lost))
	if err != nil {
		return nil, err
	}
	m.client = client
	go func() {
		for {
			fetches := client.PollFetches(context.Background())
			if fetches.IsClientClosed() {
				return
			}
			fetches.EachRecord(func(r *kgo.Record) { m.progress.read(int(r.Partition), r.Offset) })
		}
	}()
	return m, nil
}

func (m *franzMember) commit() error {
	ctx, cancel := soon()
	defer cancel()
	return m.client.CommitUncommittedOffsets(ctx)
}

func (m *franzMember) close() error {
	m.client.Close()
	return nil
}

func (f *franz) createTopic(topic string, partitions int) error {
	response, err := f.admin.CreateTopic(context.Background(), int32(partitions), 1, nil, topic)
	if err != nil {
		return err
	}
	return response.Err
}

func (f *franz) topics() (map[string]int, error) {
	details, err := f.admin.ListTopics(context.Background())
	found := map[string]int{}
	for name, topic := range details {
		found[name] = len(topic.Partitions)
	}
	return found, err
}

func (f *franz) deleteTopic(topic string) error {
	response, err := f.admin.DeleteTopic(context.Background(), topic)
	if err != nil {
		return err
	}
	return response.Err
}

func (f *franz) config(topic, key string) (string, error) {
	described, err := f.admin.DescribeTopicConfigs(context.Background(), topic)
	if err != nil {
		return "", err
	}
	resource, err := described.On(topic, nil)
	for _, config := range resource.Configs {
		if config.Key == key {
			return config.MaybeValue(), err
		}
	}
	return "", err
}

func (f *franz) groups() ([]string, error) {
	listed, err := f.admin.ListGroups(context.Background())
	return listed.Groups(), err
}

func (f *franz) groupState(group string) (string, error) {
	described, err := f.admin.DescribeGroups(context.Background(), group)
	return described[group].State, err
}

func (f *franz) deleteGroup(group string) error {
	response, err := f.admin.DeleteGroup(context.Background(), group)
	if err != nil {
		return err
	}
	return response.Err
}

func (f *franz) deleteRecords(topic string, offset int64) error {
	before := kadm.Offsets{}
	before.AddOffset(topic, 0, offset, -1)
	responses, err := f.admin.DeleteRecords(context.Background(), before)
	if err != nil {
		return err
	}
	return responses.Error()
}
