// Command pack writes PDFium's WebAssembly, compressed, to the file that it is given. A build with
// the tag packed holds that in place of the 5 MB that the module has. It is made of the module that
// go.sum vouches for, and is in no commit.
package main

import (
	"bytes"
	"log"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/klauspost/compress/zstd"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: pack FILE")
	}
	dir, err := exec.Command("go", "list", "-f", "{{.Dir}}",
		"github.com/klippa-app/go-pdfium/webassembly").Output()
	if err != nil {
		log.Fatal("finding PDFium: ", err)
	}
	wasm, err := os.ReadFile(filepath.Join(string(bytes.TrimSpace(dir)), "pdfium.wasm"))
	if err != nil {
		log.Fatal(err)
	}
	w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression),
		zstd.WithWindowSize(8<<20), zstd.WithEncoderConcurrency(1))
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(os.Args[1], w.EncodeAll(wasm, nil), 0o644); err != nil {
		log.Fatal(err)
	}
}
