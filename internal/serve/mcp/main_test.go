package mcp_test

import (
	"os"
	"testing"

	"moltisfs/internal/testdir"
)

func TestMain(m *testing.M) {
	remove := testdir.InMemory()
	status := m.Run()
	remove()
	os.Exit(status)
}
