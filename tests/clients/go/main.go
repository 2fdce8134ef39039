// The client matrix with the Go libraries: clients LIBRARY BOOTSTRAP NAME.
package main

import (
	"fmt"
	"log"
	"os"
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
	if len(os.Args) != 4 {
		log.Fatal("usage: clients LIBRARY BOOTSTRAP NAME")
	}
	chosen, known := libraries[os.Args[1]]
	if !known {
		log.Fatalf("no library %s", os.Args[1])
	}
	opened, err := chosen.open(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("version %s\n", version(chosen.module))
	(&scenario{lib: opened, name: os.Args[3], blurs: chosen.blurs}).run()
}
