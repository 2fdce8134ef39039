package main

import (
	"context"
	"errors"
	"time"

	"github.com/segmentio/kafka-go"
)

type kafkaGo struct {
	bootstrap string
	client    *kafka.Client
}

func openKafkaGo(bootstrap string) (library, error) {
	return &kafkaGo{bootstrap, &kafka.Client{Addr: kafka.TCP(bootstrap), Timeout: limit}}, nil
}

func (k *kafkaGo) close() {}

func (k *kafkaGo) produce(topic, codec string, records []record, idempotent bool, partition int) error {
	if idempotent {
		return absent("no idempotent producer")
	}
	writer := &kafka.Writer{
		Addr:         kafka.TCP(k.bootstrap),
		Topic:        topic,
		Balancer:     kafka.BalancerFunc(func(kafka.Message, ...int) int { return partition }),
		BatchBytes:   maxMessage,
		BatchSize:    len(records),
		BatchTimeout: 10 * time.Millisecond,
		RequiredAcks: kafka.RequireAll,
		Compression: map[string]kafka.Compression{
			"gzip": kafka.Gzip, "snappy": kafka.Snappy, "lz4": kafka.Lz4, "zstd": kafka.Zstd,
		}[codec],
	}
	messages := make([]kafka.Message, len(records))
	for i, r := range records {
		messages[i] = kafka.Message{Key: r.key, Value: r.value}
		for _, h := range r.headers {
			messages[i].Headers = append(messages[i].Headers, kafka.Header{Key: h.name, Value: h.value})
		}
	}
	ctx, cancel := soon()
	defer cancel()
	return errors.Join(writer.WriteMessages(ctx, messages...), writer.Close())
}

func (k *kafkaGo) reader(topic string, partition int) *kafka.Reader {
	return kafka.NewReader(kafka.ReaderConfig{
		Brokers: []string{k.bootstrap}, Topic: topic, Partition: partition, MaxBytes: maxMessage, MaxWait: 100 * time.Millisecond,
	})
}

func (k *kafkaGo) read(topic string, count int, from position) ([]record, error) {
	ctx, cancel := soon()
	defer cancel()
	reader := k.reader(topic, 0)
	defer reader.Close()
	var err error
	switch {
	case from.timestamp > 0:
		err = reader.SetOffsetAt(ctx, time.UnixMilli(from.timestamp))
	case from.offset > 0:
		err = reader.SetOffset(from.offset)
	default:
		err = reader.SetOffset(kafka.FirstOffset)
	}
	if err != nil {
		return nil, err
	}
	var found []record
	for len(found) < count {
		message, err := reader.ReadMessage(ctx)
		if err != nil {
			return nil, err
		}
		got := record{offset: message.Offset, key: message.Key, value: message.Value}
		for _, h := range message.Headers {
			got.headers = append(got.headers, header{h.Key, h.Value})
		}
		found = append(found, got)
	}
	return found, nil
}

type kafkaGoMember struct {
	*progress
	lib        *kafkaGo
	topic      string
	group      *kafka.ConsumerGroup
	generation *kafka.Generation
}

func (k *kafkaGo) member(group, topic string) (member, error) {
	joined, err := kafka.NewConsumerGroup(kafka.ConsumerGroupConfig{
		ID: group, Brokers: []string{k.bootstrap}, Topics: []string{topic}, StartOffset: kafka.FirstOffset,
		HeartbeatInterval: 300 * time.Millisecond, SessionTimeout: 6 * time.Second, RebalanceTimeout: 6 * time.Second,
		JoinGroupBackoff: 200 * time.Millisecond,
	})
	if err != nil {
		return nil, err
	}
	m := &kafkaGoMember{progress: newProgress(), lib: k, topic: topic, group: joined}
	go m.run()
	return m, nil
}

func (m *kafkaGoMember) run() {
	for {
		generation, err := m.group.Next(context.Background())
		if errors.Is(err, kafka.ErrGroupClosed) {
			return
		}
		if err != nil {
			continue
		}
		var partitions []int
		for _, assignment := range generation.Assignments[m.topic] {
			partitions = append(partitions, assignment.ID)
			generation.Start(func(ctx context.Context) { m.consume(ctx, assignment) })
		}
		m.mutex.Lock()
		m.generation = generation
		m.mutex.Unlock()
		m.assign(partitions)
	}
}

// consume reads a partition until its generation ends.
func (m *kafkaGoMember) consume(ctx context.Context, assignment kafka.PartitionAssignment) {
	reader := m.lib.reader(m.topic, assignment.ID)
	defer reader.Close()
	if reader.SetOffset(assignment.Offset) != nil {
		return
	}
	for {
		message, err := reader.ReadMessage(ctx)
		if err != nil {
			return
		}
		m.progress.read(message.Partition, message.Offset)
	}
}

func (m *kafkaGoMember) commit() error {
	m.mutex.Lock()
	generation := m.generation
	m.mutex.Unlock()
	return generation.CommitOffsets(map[string]map[int]int64{m.topic: m.positions()})
}

func (m *kafkaGoMember) close() error { return m.group.Close() }

func (k *kafkaGo) createTopic(topic string, partitions int) error {
	response, err := k.client.CreateTopics(context.Background(), &kafka.CreateTopicsRequest{
		Topics: []kafka.TopicConfig{{Topic: topic, NumPartitions: partitions, ReplicationFactor: 1}},
	})
	if err != nil {
		return err
	}
	return response.Errors[topic]
}

func (k *kafkaGo) topics() (map[string]int, error) {
	response, err := k.client.Metadata(context.Background(), &kafka.MetadataRequest{})
	if err != nil {
		return nil, err
	}
	found := map[string]int{}
	for _, topic := range response.Topics {
		found[topic.Name] = len(topic.Partitions)
	}
	return found, nil
}

func (k *kafkaGo) deleteTopic(topic string) error {
	response, err := k.client.DeleteTopics(context.Background(), &kafka.DeleteTopicsRequest{Topics: []string{topic}})
	if err != nil {
		return err
	}
	return response.Errors[topic]
}

func (k *kafkaGo) config(topic, key string) (string, error) {
	response, err := k.client.DescribeConfigs(context.Background(), &kafka.DescribeConfigsRequest{
		Resources: []kafka.DescribeConfigRequestResource{{ResourceType: kafka.ResourceTypeTopic, ResourceName: topic, ConfigNames: []string{key}}},
	})
	if err != nil {
		return "", err
	}
	return response.Resources[0].ConfigEntries[0].ConfigValue, response.Resources[0].Error
}

func (k *kafkaGo) groups() ([]string, error) {
	response, err := k.client.ListGroups(context.Background(), &kafka.ListGroupsRequest{})
	if err != nil {
		return nil, err
	}
	var found []string
	for _, group := range response.Groups {
		found = append(found, group.GroupID)
	}
	return found, response.Error
}

func (k *kafkaGo) groupState(group string) (string, error) {
	response, err := k.client.DescribeGroups(context.Background(), &kafka.DescribeGroupsRequest{GroupIDs: []string{group}})
	if err != nil {
		return "", err
	}
	return response.Groups[0].GroupState, response.Groups[0].Error
}

func (k *kafkaGo) deleteGroup(group string) error {
	response, err := k.client.DeleteGroups(context.Background(), &kafka.DeleteGroupsRequest{GroupIDs: []string{group}})
	if err != nil {
		return err
	}
	return response.Errors[group]
}

func (k *kafkaGo) deleteRecords(string, int64) error { return absent("cannot delete records") }
