package tools

import (
	"context"
	"regexp"
	"strings"

	"moltisfs/checkpoint"
	"moltisfs/internal/engine"
)

// hexID is an id of Moltis.
var hexID = regexp.MustCompile(`^[0-9a-f]{32}$`)

// idOf is the checkpoint that a call names: by its id, or by the one that it had in Moltis, from
// where it was imported.
func (s *Suite) idOf(ctx context.Context, c *engine.Call, given *string) (checkpoint.ID, error) {
	id := strings.TrimSpace(value(given))
	if !hexID.MatchString(id) {
		return checkpoint.ID(id), nil
	}
	page, err := s.engine.Checkpoints(ctx, c, checkpoint.Filter{Label: "moltis:" + id, Limit: 1})
	if err == nil && len(page.Checkpoints) == 0 {
		err = bad("take an id from checkpoints_list; moltis-fs checkpoint import-moltis brings in those of Moltis",
			"%s is an id of Moltis, and no checkpoint was imported under it", id)
	}
	if err != nil {
		return "", err
	}
	return page.Checkpoints[0].ID, nil
}
