package readers_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"moltisfs/readers"
)

// The bytes say what it is; a window says where the next one begins.
func ExampleReaders_Read() {
	rs, err := readers.New(readers.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer rs.Close()
	file := "one\ntwo\nthree\n"
	content, err := rs.Read(context.Background(),
		readers.Source{R: strings.NewReader(file), Size: int64(len(file))}, readers.Options{Limit: 2})
	if err != nil {
		log.Fatal(err)
	}
	if text, ok := content.(*readers.Text); ok {
		fmt.Print(text.Content)
		fmt.Println("next:", text.NextOffset)
	}
	// Output:
	//      1→one
	//      2→two
	// next: 3
}
