package tools_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"moltisfs/config"
	"moltisfs/internal/approval"
	"moltisfs/tools"
)

// counts approves everything and counts how often it was asked.
type counts struct{ asked *int }

func (c counts) Ask(context.Context, approval.Question) (approval.Answer, error) {
	*c.asked++
	return approval.Answer{Decision: approval.Approved}, nil
}

// A tier adds to what the configuration asks for, and takes nothing from it.
func TestTiers(t *testing.T) {
	for _, c := range []struct {
		tier     approval.Tier
		required bool // require_approval
		write    string
		read     string
		asked    int
		warned   bool
	}{
		{"", false, "write", "text", 0, false},
		{"", true, "write", "text", 1, false},
		{approval.TierAutonomous, false, "write", "text", 0, false},
		{approval.TierAutonomous, true, "write", "text", 1, false},
		{approval.TierNotify, false, "write", "text", 0, true},
		{approval.TierNotify, true, "write", "text", 1, true},
		{approval.TierAsk, false, "write", "text", 1, false},
		{approval.TierAsk, true, "write", "text", 1, false},
		{approval.TierBlocked, false, "permission_denied", "permission_denied", 0, false},
		{approval.TierBlocked, true, "permission_denied", "permission_denied", 0, false},
		{"free", false, "", "", 0, false},
	} {
		asked, log := 0, bytes.Buffer{}
		s, root := suite(t, func(fs *config.FS) { fs.RequireApproval = c.required }, tools.Options{
			Approver: counts{&asked},
			Logger:   slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})),
		})
		write(t, root+"/f", "one\n")
		kind := func(tool string, args map[string]any) string {
			raw, _ := json.Marshal(args)
			p, err := s.Call(t.Context(), tools.Call{Tool: tool, Args: raw, Tier: c.tier})
			if err != nil {
				return ""
			}
			return p.Kind()
		}
		wrote := kind("Write", map[string]any{"file_path": root + "/new", "content": "x"})
		read := kind("Read", map[string]any{"file_path": root + "/f"})
		warned := strings.Contains(log.String(), "tool=Write")
		if wrote != c.write || read != c.read || asked != c.asked || warned != c.warned {
			t.Errorf("%+v: write %q, read %q, asked %d times, warned %t", c, wrote, read, asked, warned)
		}
	}
}
