package tools_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"moltisfs/config"
	"moltisfs/tools"
)

func benchCall(b *testing.B, s *tools.Suite, tool, args string) {
	b.Helper()
	p, err := s.Call(context.Background(), tools.Call{Tool: tool, Args: json.RawMessage(args)})
	if err != nil || tools.Refused(p) {
		b.Fatal(err, p)
	}
}

func BenchmarkRead4K(b *testing.B) {
	for _, track := range []bool{false, true} {
		b.Run(fmt.Sprintf("track=%v", track), func(b *testing.B) {
			s, root := suite(b, func(fs *config.FS) { fs.TrackReads = track }, tools.Options{})
			f := write(b, root+"/f.go", strings.Repeat("some line of code that is about sixty-four bytes in its length\n", 64))
			args := fmt.Sprintf(`{"file_path":%q}`, f)
			b.SetBytes(4096)
			b.ReportAllocs()
			for b.Loop() {
				benchCall(b, s, "Read", args)
			}
		})
	}
}

func BenchmarkEdit(b *testing.B) {
	for _, c := range []struct {
		name       string
		size       int
		checkpoint bool
	}{
		{"4KB", 4 << 10, false},
		{"10KB", 10 << 10, false},
		{"10KB+checkpoint", 10 << 10, true},
		{"200KB", 200 << 10, false},
		{"200KB+checkpoint", 200 << 10, true},
	} {
		b.Run(c.name, func(b *testing.B) {
			s, root := suite(b, func(fs *config.FS) { fs.CheckpointBeforeMutation = c.checkpoint }, tools.Options{})
			f := write(b, root+"/f.go", "counter 0;\n"+strings.Repeat("some line of code that is about sixty-four bytes in its length\n", c.size/63))
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				benchCall(b, s, "Edit", fmt.Sprintf(`{"file_path":%q,"old_string":"counter %d;","new_string":"counter %d;"}`, f, i, i+1))
			}
		})
	}
}

// BenchmarkRefused is the envelope of a call and nothing within: an argument is wrong.
func BenchmarkRefused(b *testing.B) {
	s, _ := suite(b, nil, tools.Options{})
	for b.Loop() {
		if _, err := s.Call(b.Context(), tools.Call{Tool: "Read", Args: json.RawMessage(`{}`)}); err != nil {
			b.Fatal(err)
		}
	}
}
