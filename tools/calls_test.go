package tools_test

import (
	"testing"

	"moltisfs/internal/toolstest"
)

func TestGoldenCalls(t *testing.T) {
	toolstest.Run(t, "../testdata/calls", toolstest.Direct)
}
