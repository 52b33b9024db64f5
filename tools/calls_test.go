package tools_test

import (
	"testing"

	"moltisfs/tools/toolstest"
)

func TestGoldenCalls(t *testing.T) {
	toolstest.Run(t, "../testdata/calls", toolstest.Direct)
}
