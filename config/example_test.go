package config_test

import (
	"fmt"

	"moltisfs/config"
)

// All problems come at once, each with its place and what to write instead.
func ExampleDecode() {
	_, err := config.Decode([]byte(`
[tools.fs]
workspace_root = "src"
track_read = true
binary_policy = "hex"
`), "moltis.toml")
	fmt.Println(err)
	// Output:
	// moltis.toml:3:1: tools.fs.workspace_root: "src" is not absolute; begin it with /
	// moltis.toml:4:1: tools.fs.track_read: unknown key; did you mean "track_reads"?
	// moltis.toml:5:1: tools.fs.binary_policy: "hex" is not known; use one of "reject", "base64"
}
