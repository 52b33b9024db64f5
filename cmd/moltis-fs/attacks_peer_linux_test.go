package main

import "testing"

func peerLines(t *testing.T) []attackLine { return nil }
