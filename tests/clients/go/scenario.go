package main

import (
	"bytes"
	"errors"
	"fmt"
	"log"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	limit          = 20 * time.Second
	partitions     = 4
	perPartition   = 50
	firstTimestamp = 1_700_000_000_000
	maxMessage     = 6_000_000
)

var codecs = []string{"none", "gzip", "snappy", "lz4", "zstd"}

// absent is the error of a call that a library has not.
type absent string

func (why absent) Error() string { return string(why) }

type header struct {
	name  string
	value []byte
}

type record struct {
	offset     int64
	key, value []byte
	headers    []header
}

// position says where reading starts: the beginning, unless an offset or a timestamp (milliseconds) is told.
type position struct {
	offset    int64
	timestamp int64
}

// library is what a program supplies.
type library interface {
	// produce writes records to a partition and waits for their acknowledgement.
	produce(topic, codec string, records []record, idempotent bool, partition int) error
	// read reads partition 0 without a group.
	read(topic string, count int, from position) ([]record, error)
	// member joins a group, reading from the earliest record.
	member(group, topic string) (member, error)

	createTopic(topic string, partitions int) error
	// topics returns partition counts by name.
	topics() (map[string]int, error)
	deleteTopic(topic string) error
	config(topic, key string) (string, error)
	groups() ([]string, error)
	groupState(group string) (string, error)
	deleteGroup(group string) error
	deleteRecords(topic string, offset int64) error
	close()
}

type member interface {
	assigned() []int
	// seen returns partition:offset of each record read.
	seen() map[string]bool
	// commit commits what was read of the assigned partitions.
	commit() error
	close() error
}

// progress is what the members of all libraries keep.
type progress struct {
	mutex      sync.Mutex
	partitions []int
	records    map[string]bool
	next       map[int]int64
}

func newProgress() *progress {
	return &progress{records: map[string]bool{}, next: map[int]int64{}}
}

func (p *progress) assign(partitions []int) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.partitions = slices.Clone(partitions)
}

func (p *progress) read(partition int, offset int64) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.records[fmt.Sprintf("%d:%d", partition, offset)] = true
	p.next[partition] = offset + 1
}

func (p *progress) assigned() []int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return slices.Clone(p.partitions)
}

func (p *progress) seen() map[string]bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return maps.Clone(p.records)
}

// positions returns the next offset of each assigned partition that something was read of.
func (p *progress) positions() map[int]int64 {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	found := map[int]int64{}
	for _, partition := range p.partitions {
		if next, ok := p.next[partition]; ok {
			found[partition] = next
		}
	}
	return found
}

func plain(i int) record {
	return record{key: fmt.Appendf(nil, "key-%d", i), value: fmt.Appendf(nil, "value-%d-%s", i, strings.Repeat("x", i%300))}
}

func nulls(i int) record {
	r := record{key: fmt.Appendf(nil, "key-%d", i), value: fmt.Appendf(nil, "value-%d", i)}
	switch {
	case i%3 == 0:
		r.key = nil
	case i%5 == 0:
		r.key = []byte{}
	}
	switch {
	case i%3 == 1:
		r.value = nil
	case i%5 == 1:
		r.value = []byte{}
	}
	return r
}

func headed(i int) record {
	return record{
		key:     fmt.Appendf(nil, "key-%d", i),
		value:   fmt.Appendf(nil, "value-%d", i),
		headers: []header{{"n", fmt.Appendf(nil, "%d", i)}, {"n", []byte("again")}, {"empty", []byte{}}, {"null", nil}},
	}
}

func large(int) record {
	value := make([]byte, 5*1024*1024)
	for at := range value {
		value[at] = byte(at % 251)
	}
	return record{key: []byte("large"), value: value}
}

func (s *scenario) compare(i int, want, got record) error {
	same := func(want, got []byte) bool {
		return bytes.Equal(want, got) && (s.blurs || (want == nil) == (got == nil))
	}
	equal := got.offset == int64(i) && same(want.key, got.key) && same(want.value, got.value) &&
		slices.EqualFunc(want.headers, got.headers, func(a, b header) bool { return a.name == b.name && same(a.value, b.value) })
	if equal {
		return nil
	}
	return fmt.Errorf("record %d: %.300s, want %.300s", i, fmt.Sprintf("%#v", got), fmt.Sprintf("%#v", want))
}

func until(what string, condition func() bool) error {
	for deadline := time.Now().Add(limit); !condition(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("not in time: %s", what)
		}
	}
	return nil
}

func check(capability string, body func() error) {
	var none absent
	switch err := body(); {
	case err == nil:
		fmt.Printf("ok %s\n", capability)
	case errors.As(err, &none):
		fmt.Printf("none %s: %s\n", capability, none)
	default:
		fmt.Printf("FAIL %s: %s\n", capability, strings.ReplaceAll(err.Error(), "\n", " "))
	}
}

// version returns the version of a module that this program is built with.
func version(module string) string {
	info, _ := debug.ReadBuildInfo()
	for _, dependency := range info.Deps {
		if dependency.Path == module {
			return strings.TrimPrefix(dependency.Version, "v")
		}
	}
	log.Fatalf("%s is not built in", module)
	return ""
}

// scenario is what every library does.
type scenario struct {
	lib  library
	name string
	// blurs is whether the library reads null and empty alike.
	blurs bool
	// The members of the group that are still there.
	members []member
}

func (s *scenario) run() {
	s.producing()
	s.grouping()
	s.seeking()
	s.administering()
	s.lib.close()
}

func (s *scenario) producing() {
	written := func(capability, topic, codec string, count int, content func(int) record, idempotent bool) {
		check(capability, func() error {
			want := make([]record, count)
			for i := range want {
				want[i] = content(i)
			}
			if err := s.lib.produce(s.name+"-"+topic, codec, want, idempotent, 0); err != nil {
				return err
			}
			got, err := s.lib.read(s.name+"-"+topic, count, position{})
			if err != nil {
				return err
			}
			for i := range want {
				if err := s.compare(i, want[i], got[i]); err != nil {
					return err
				}
			}
			return nil
		})
	}
	for _, codec := range codecs {
		written(codec, codec, codec, 300, plain, false)
	}
	written("nulls", "nulls", "none", 40, nulls, false)
	written("headers", "headers", "none", 40, headed, false)
	written("5 MB", "large", "none", 1, large, false)
	written("idempotence", "idempotence", "none", 300, plain, true)
}

func everywhere(offset int) map[string]bool {
	all := map[string]bool{}
	for partition := range partitions {
		all[fmt.Sprintf("%d:%d", partition, offset)] = true
	}
	return all
}

func within(part map[string]bool, wholes ...map[string]bool) bool {
	for each := range part {
		if !slices.ContainsFunc(wholes, func(whole map[string]bool) bool { return whole[each] }) {
			return false
		}
	}
	return true
}

func (s *scenario) join() (member, error) {
	joined, err := s.lib.member(s.name, s.name+"-group")
	if err == nil {
		s.members = append(s.members, joined)
	}
	return joined, err
}

func (s *scenario) produceEverywhere() error {
	for partition := range partitions {
		if err := s.lib.produce(s.name+"-group", "none", []record{{value: []byte("more")}}, false, partition); err != nil {
			return err
		}
	}
	return nil
}

func (s *scenario) grouping() {
	check("two members", s.twoMembers)
	check("take-over", s.takeOver)
	check("restart", s.restart)
}

func (s *scenario) twoMembers() error {
	one, err := s.join()
	if err != nil {
		return err
	}
	if err := until("every record", func() bool { return len(one.seen()) == partitions*perPartition }); err != nil {
		return err
	}
	if err := one.commit(); err != nil {
		return err
	}
	two, err := s.join()
	if err != nil {
		return err
	}
	var ofTheSecond []int
	err = until("partitions for both", func() bool {
		ofTheSecond = two.assigned()
		all := slices.Concat(one.assigned(), ofTheSecond)
		slices.Sort(all)
		return len(ofTheSecond) == 2 && slices.Equal(all, []int{0, 1, 2, 3})
	})
	if err != nil {
		return err
	}
	if err := s.produceEverywhere(); err != nil {
		return err
	}
	if err := until("new records by both", func() bool { return within(everywhere(perPartition), one.seen(), two.seen()) }); err != nil {
		return err
	}
	want := map[string]bool{}
	for _, partition := range ofTheSecond {
		want[fmt.Sprintf("%d:%d", partition, perPartition)] = true
	}
	if got := two.seen(); !maps.Equal(want, got) {
		return fmt.Errorf("records of the second: %v, want %v", got, want)
	}
	return nil
}

func (s *scenario) takeOver() error {
	if len(s.members) < 2 {
		return errors.New("there are no two members")
	}
	one, two := s.members[0], s.members[1]
	if err := errors.Join(two.commit(), two.close()); err != nil {
		return err
	}
	if err := until("all partitions", func() bool { return len(one.assigned()) == partitions }); err != nil {
		return err
	}
	if err := s.produceEverywhere(); err != nil {
		return err
	}
	return until("new records of all partitions", func() bool { return within(everywhere(perPartition+1), one.seen()) })
}

func (s *scenario) restart() error {
	if len(s.members) == 0 {
		return errors.New("there is no member")
	}
	if err := errors.Join(s.members[0].commit(), s.members[0].close(), s.produceEverywhere()); err != nil {
		return err
	}
	three, err := s.join()
	if err != nil {
		return err
	}
	want := everywhere(perPartition + 2)
	if err := until("new records", func() bool { return within(want, three.seen()) }); err != nil {
		return err
	}
	if got := three.seen(); !maps.Equal(want, got) {
		return fmt.Errorf("records after the commit: %v, want %v", got, want)
	}
	return three.close()
}

func (s *scenario) first(from position, want string) error {
	got, err := s.lib.read(s.name+"-seek", 1, from)
	if err == nil && string(got[0].value) != want {
		err = fmt.Errorf("%s, want %s", got[0].value, want)
	}
	return err
}

func (s *scenario) seeking() {
	check("seek", func() error {
		return errors.Join(s.first(position{offset: 42}, "seek-42"), s.first(position{}, "seek-0"))
	})
	check("timestamps", func() error { return s.first(position{timestamp: firstTimestamp + 59_500}, "seek-60") })
}

func (s *scenario) administering() {
	check("topics", s.topics)
	check("configs", func() error {
		got, err := s.lib.config(s.name+"-large", "max.message.bytes")
		if err == nil && got != "6000000" {
			err = fmt.Errorf("max.message.bytes is %q", got)
		}
		return err
	})
	check("groups", func() error {
		groups, err := s.lib.groups()
		if err == nil && !slices.Contains(groups, s.name) {
			err = fmt.Errorf("not in %v", groups)
		}
		if err != nil {
			return err
		}
		state, err := s.lib.groupState(s.name)
		if err == nil && state != "Empty" {
			err = fmt.Errorf("state %q", state)
		}
		return err
	})
	check("delete group", func() error {
		if err := s.lib.deleteGroup(s.name); err != nil {
			return err
		}
		groups, err := s.lib.groups()
		if err == nil && slices.Contains(groups, s.name) {
			err = errors.New("still listed")
		}
		return err
	})
	check("delete records", func() error {
		if err := s.lib.deleteRecords(s.name+"-seek", 10); err != nil {
			return err
		}
		return s.first(position{}, "seek-10")
	})
}

func (s *scenario) topics() error {
	made := s.name + "-made"
	listed := func(want int) func() bool {
		return func() bool {
			topics, err := s.lib.topics()
			return err == nil && topics[made] == want
		}
	}
	if err := s.lib.createTopic(made, 3); err != nil {
		return err
	}
	if err := until("the topic is listed", listed(3)); err != nil {
		return err
	}
	if err := s.lib.deleteTopic(made); err != nil {
		return err
	}
	return until("the topic is gone", listed(0))
}
