package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"
)

type saramaLibrary struct {
	brokers []string
	admin   sarama.ClusterAdmin
}

func saramaConfig() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.MaxVersion
	config.Consumer.MaxWaitTime = 100 * time.Millisecond
	return config
}

func openSarama(bootstrap string) (library, error) {
	admin, err := sarama.NewClusterAdmin([]string{bootstrap}, saramaConfig())
	return &saramaLibrary{[]string{bootstrap}, admin}, err
}

func (s *saramaLibrary) close() { _ = s.admin.Close() }

func encoder(data []byte) sarama.Encoder {
	if data == nil {
		return nil
	}
	return sarama.ByteEncoder(data)
}

func (s *saramaLibrary) produce(topic, codec string, records []record, idempotent bool, partition int) error {
	config := saramaConfig()
	config.Producer.Compression = map[string]sarama.CompressionCodec{
		"gzip": sarama.CompressionGZIP, "snappy": sarama.CompressionSnappy, "lz4": sarama.CompressionLZ4, "zstd": sarama.CompressionZSTD,
	}[codec]
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.MaxMessageBytes = maxMessage
	config.Producer.Return.Successes = true
	config.Producer.Idempotent = idempotent
	config.Net.MaxOpenRequests = 1
	producer, err := sarama.NewSyncProducer(s.brokers, config)
	if err != nil {
		return err
	}
	messages := make([]*sarama.ProducerMessage, len(records))
	for i, r := range records {
		messages[i] = &sarama.ProducerMessage{Topic: topic, Partition: int32(partition), Key: encoder(r.key), Value: encoder(r.value)}
		for _, h := range r.headers {
			messages[i].Headers = append(messages[i].Headers, sarama.RecordHeader{Key: []byte(h.name), Value: h.value})
		}
	}
	return errors.Join(producer.SendMessages(messages), producer.Close())
}

func (s *saramaLibrary) read(topic string, count int, from position) ([]record, error) {
	client, err := sarama.NewClient(s.brokers, saramaConfig())
	if err != nil {
		return nil, err
	}
	defer client.Close()
	start := from.offset
	switch {
	case from.timestamp > 0:
		if start, err = client.GetOffset(topic, 0, from.timestamp); err != nil {
			return nil, err
		}
	case start == 0:
		start = sarama.OffsetOldest
	}
	consumer, err := sarama.NewConsumerFromClient(client)
	if err != nil {
		return nil, err
	}
	defer consumer.Close()
	reading, err := consumer.ConsumePartition(topic, 0, start)
	if err != nil {
		return nil, err
	}
	defer reading.Close()
	var found []record
	for len(found) < count {
		select {
		case m := <-reading.Messages():
			got := record{offset: m.Offset, key: m.Key, value: m.Value}
			for _, h := range m.Headers {
				got.headers = append(got.headers, header{string(h.Key), h.Value})
			}
			found = append(found, got)
		case <-time.After(limit):
			return nil, fmt.Errorf("read %d of %d records", len(found), count)
		}
	}
	return found, nil
}

type saramaMember struct {
	*progress
	topic   string
	group   sarama.ConsumerGroup
	session sarama.ConsumerGroupSession
}

func (s *saramaLibrary) member(group, topic string) (member, error) {
	config := saramaConfig()
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	config.Consumer.Group.Session.Timeout = 6 * time.Second
	config.Consumer.Group.Heartbeat.Interval = 300 * time.Millisecond
	joined, err := sarama.NewConsumerGroup(s.brokers, group, config)
	if err != nil {
		return nil, err
	}
	m := &saramaMember{progress: newProgress(), topic: topic, group: joined}
	go func() {
		for !errors.Is(joined.Consume(context.Background(), []string{topic}, m), sarama.ErrClosedConsumerGroup) {
		}
	}()
	return m, nil
}

// Setup is called at the start of a generation.
func (m *saramaMember) Setup(session sarama.ConsumerGroupSession) error {
	m.mutex.Lock()
	m.session = session
	m.mutex.Unlock()
	var partitions []int
	for _, partition := range session.Claims()[m.topic] {
		partitions = append(partitions, int(partition))
	}
	m.assign(partitions)
	return nil
}

// Cleanup is called at the end of a generation.
func (m *saramaMember) Cleanup(sarama.ConsumerGroupSession) error {
	m.assign(nil)
	return nil
}

// ConsumeClaim reads a partition until its generation ends.
func (m *saramaMember) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for message := range claim.Messages() {
		session.MarkMessage(message, "")
		m.progress.read(int(message.Partition), message.Offset)
	}
	return nil
}

func (m *saramaMember) commit() error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.session.Commit()
	return nil
}

func (m *saramaMember) close() error { return m.group.Close() }

func (s *saramaLibrary) createTopic(topic string, partitions int) error {
	return s.admin.CreateTopic(topic, &sarama.TopicDetail{NumPartitions: int32(partitions), ReplicationFactor: 1}, false)
}

func (s *saramaLibrary) topics() (map[string]int, error) {
	listed, err := s.admin.ListTopics()
	found := map[string]int{}
	for name, topic := range listed {
		found[name] = int(topic.NumPartitions)
	}
	return found, err
}

func (s *saramaLibrary) deleteTopic(topic string) error { return s.admin.DeleteTopic(topic) }

func (s *saramaLibrary) config(topic, key string) (string, error) {
	entries, err := s.admin.DescribeConfig(sarama.ConfigResource{Type: sarama.TopicResource, Name: topic, ConfigNames: []string{key}})
	if err != nil {
		return "", err
	}
	return entries[0].Value, nil
}

func (s *saramaLibrary) groups() ([]string, error) {
	listed, err := s.admin.ListConsumerGroups()
	var found []string
	for group := range listed {
		found = append(found, group)
	}
	return found, err
}

func (s *saramaLibrary) groupState(group string) (string, error) {
	described, err := s.admin.DescribeConsumerGroups([]string{group})
	if err != nil {
		return "", err
	}
	return described[0].State, nil
}

func (s *saramaLibrary) deleteGroup(group string) error { return s.admin.DeleteConsumerGroup(group) }

func (s *saramaLibrary) deleteRecords(topic string, offset int64) error {
	return s.admin.DeleteRecords(topic, map[int32]int64{0: offset})
}
