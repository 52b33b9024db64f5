package capability

import (
	"flag"
	"os"
	"testing"
)

// The tests here wait more than they compute: more of them run at once than there are processors.
func TestMain(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		_ = f.Value.Set("16")
	}
	os.Exit(m.Run())
}
