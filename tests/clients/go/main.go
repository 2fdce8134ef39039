// The client matrix with the Go libraries: clients LIBRARY BOOTSTRAP NAME. With clients LIBRARY BOOTSTRAP TOPIC COUNT records of
// partition 0 are printed instead.
package main

import (
	"fmt"
	"log"
	"os"
	"strconv"
)

// libraries has what each is built from and how it is opened.
var libraries = map[string]struct {
	module string
	open   func(bootstrap string) (library, error)
	// blurs is whether null and empty are read alike.
	blurs bool
}{
	"franz-go": {"github.com/twmb/franz-go", openFranz, false},
	"kafka-go": {"github.com/segmentio/kafka-go", openKafkaGo, true},
	"sarama":   {"github.com/IBM/sarama", openSarama, false},
}

func main() {
	if len(os.Args) != 4 && len(os.Args) != 5 {
		log.Fatal("usage: clients LIBRARY BOOTSTRAP NAME, clients LIBRARY BOOTSTRAP TOPIC COUNT")
	}
	chosen, known := libraries[os.Args[1]]
	if !known {
		log.Fatalf("no library %s", os.Args[1])
	}
	opened, err := chosen.open(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	if len(os.Args) == 5 {
		if err := show(opened, os.Args[3], os.Args[4]); err != nil {
			log.Fatal(err)
		}
		return
	}
	fmt.Printf("version %s\n", version(chosen.module))
	(&scenario{lib: opened, name: os.Args[3], blurs: chosen.blurs}).run()
}

func show(lib library, topic, count string) error {
	wanted, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	found, err := lib.read(topic, wanted, position{})
	if err != nil {
		return err
	}
	text := func(b []byte) string {
		if len(b) == 0 { // kafka-go does not tell them apart
			return "null"
		}
		return string(b)
	}
	for _, r := range found {
		fmt.Print(text(r.key), " ", text(r.value))
		for _, h := range r.headers {
			fmt.Print(" ", h.name, "=", text(h.value))
		}
		fmt.Println()
	}
	return nil
}
