package capability

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	matching "moltisfs/grep/match"
	"moltisfs/internal/args"
	"moltisfs/internal/dialect"
	"moltisfs/internal/edit"
	"moltisfs/internal/engine"
	"moltisfs/internal/glob"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/refusal"
)

// A fault is an error as it is told: both published forms in one object.
type fault struct {
	Type        string         `json:"type"`
	Message     string         `json:"message"`
	Description string         `json:"description"`
	Recovery    []recovery     `json:"recovery"`
	Retryable   bool           `json:"retryable"`
	RetryAfter  *int           `json:"retry_after"` // seconds
	Context     map[string]any `json:"context"`
}

// refuse is a refusal as an answer.
func (c *call) refuse(ctx context.Context, decoded any, r *engine.Refusal) *answer {
	as, kind := refusal.Of(r.Cause), c.def.kindOf(r.Cause)
	known := known().failing(c.def, kind)
	paths := pathsOf(decoded)
	about := ""
	for i, p := range paths {
		if i == 0 || p == r.Path {
			about = p
		}
	}
	f := fault{Type: kind, Description: known.Description, Recovery: c.recoveries(ctx, known, decoded, about, r.Facts),
		Retryable: as.Retry, Context: contextOf(r, kind, paths)}
	if as.After > 0 {
		f.RetryAfter = &as.After
	}
	f.Message = tell(kind, about, r)
	out, err := args.Encode(f)
	if err != nil {
		out = mustJSON(fault{Type: kind, Message: f.Message, Description: f.Description,
			Recovery: []recovery{}, Context: map[string]any{}})
	}
	return &answer{dialect.Object{Of: kind, No: true, Content: out}}
}

// kindOf is the type of error that the text gives the capability for a cause; where it gives none, the first of
// the row.
func (d *definition) kindOf(c engine.Cause) string {
	kinds := strings.Fields(refusal.Of(c).Type)
	for _, kind := range kinds {
		if d.has(kind) {
			return kind
		}
	}
	return kinds[0]
}

// tell is the sentence of a refusal about what the call named. Of a path that is out of scope it is the same
// whatever rule says so.
func tell(kind, about string, r *engine.Refusal) string {
	about = cmp.Or(edit.ShownPath(about), "it") // of an entry in the trash, the path is not told
	says := about + " is out of scope"
	if class := r.Class(); class != "" {
		says += ": names like this are of the class " + class
	} else if kind != outOfScope {
		says = refusal.Tell(r, refusal.Voice{Path: about, Now: map[string]string{"trash": "yes"}}).Says
	}
	if r.Class() != "" || r.Cause == engine.RunsCode {
		says += "; the operator can lift that: " + r.Lift()
	}
	return says
}

const outOfScope = "PathOutOfScope"

// has says that the text names this type of error for the capability.
func (d *definition) has(kind string) bool {
	for _, f := range d.Errors {
		if f.Type == kind {
			return true
		}
	}
	return false
}

// pathsOf gives the paths that a call names; none if one of them is too long for any file.
func pathsOf(decoded any) []string {
	p, ok := decoded.(interface{ paths() []string })
	if !ok {
		return nil
	}
	paths := p.paths()
	if slices.ContainsFunc(paths, func(p string) bool { return len(p) > guardfs.MaxPath }) {
		return nil
	}
	return paths
}

// recoveries gives the recoveries of an error, with the paths of the call filled in. A recovery that needs another name comes without
// inputs. Left out are the very call that was refused, and reads and lists of paths where nothing is. If none is left, it gives a look at
// the path. For example, "list {parent}" of a read of /a/none becomes filesystem.list of /a, if that is a directory.
func (c *call) recoveries(ctx context.Context, of failing, decoded any, about string, facts any) []recovery {
	found := 0
	if f, ok := facts.(*engine.CountError); ok {
		found = f.Total
	}
	words := map[string]string{}
	if about != "" {
		words = map[string]string{"{path}": about, "{parent}": path.Dir(about),
			"{name}": glob.Literal(path.Base(about))}
	}
	if p := pathsOf(decoded); len(p) == 2 {
		words["{source}"], words["{destination}"] = p[0], p[1]
	}
	out := []recovery{}
	for _, r := range of.Recovery {
		if r.Inputs != nil {
			filled := map[string]any{}
			for k, v := range r.Inputs {
				if v == "{most}" {
					v = min(c.e.Config().MaxReadBytes, 1<<20)
				} else if v == "{found}" && found > 0 {
					v = found
				} else if text, ok := v.(string); ok {
					if v, ok = fill(text, words); !ok {
						filled = nil
						break
					}
				}
				filled[k] = v
			}
			r.Inputs = filled
		}
		if !c.repeats(r, decoded) && c.leads(ctx, r) {
			out = append(out, r)
		}
	}
	if len(out) == 0 && len(of.Recovery) > 0 && c.def.Name != "filesystem.stat" {
		if at := c.nearest(ctx, about, guardfs.KindAbsent); at != "" {
			out = append(out, recovery{"look", "Use filesystem.stat to see what is there.", "filesystem.stat",
				map[string]any{"path": at}})
		}
	}
	return out
}

// repeats says that a recovery is the call that was refused: its inputs go with what was sent.
func (c *call) repeats(r recovery, decoded any) bool {
	if r.Capability != c.def.Name || r.Inputs == nil {
		return false
	}
	sent, next := map[string]any{}, map[string]any{}
	for _, p := range c.def.Inputs {
		if p.Default != nil {
			sent[p.Name], next[p.Name] = p.Default, p.Default
		}
	}
	for _, raw := range [][]byte{mustJSON(decoded), mustJSON(r.Inputs)} { // objects, both
		_ = json.Unmarshal(raw, &next)
	}
	_ = json.Unmarshal(mustJSON(decoded), &sent)
	return bytes.Equal(mustJSON(sent), mustJSON(next))
}

// leads says that a recovery has something to read or to list. A directory that is not there is
// replaced by the nearest one above it.
func (c *call) leads(ctx context.Context, r recovery) bool {
	at, _ := r.Inputs["path"].(string)
	switch {
	case at == "":
	case r.Capability == "filesystem.read":
		return c.nearest(ctx, at, guardfs.KindFile) == at
	case r.Capability == "filesystem.list", r.Capability == "filesystem.search":
		at = c.nearest(ctx, at, guardfs.KindDir)
		r.Inputs["path"] = at
		return at != ""
	}
	return true
}

// nearest is a path, or the nearest above it, where something of a kind is, or with KindAbsent
// anything; "" where there is none that may be seen.
func (c *call) nearest(ctx context.Context, at string, kind guardfs.Kind) string {
	trace := c.Trace
	defer func() { c.Trace = trace }()
	for path.IsAbs(at) {
		e, err := c.Stat(ctx, at, true)
		if err == nil && (kind == guardfs.KindAbsent || e.Kind == kind) {
			return at
		}
		if at == "/" {
			break
		}
		at = path.Dir(at)
	}
	return ""
}

// fill puts words into a text.
func fill(text string, words map[string]string) (any, bool) {
	for _, word := range []string{"{path}", "{parent}", "{name}", "{source}", "{destination}",
		"{found}"} {
		if !strings.Contains(text, word) {
			continue
		}
		if words[word] == "" {
			return nil, false
		}
		return strings.Replace(text, word, words[word], 1), true // no text has two
	}
	return text, true
}

// contextOf are the facts for a program.
func contextOf(r *engine.Refusal, kind string, paths []string) map[string]any {
	out := map[string]any{}
	if kind != outOfScope { // which rule it is, the operator's log tells
		out["cause"] = r.Cause.Name
	}
	switch {
	case len(paths) == 1 && paths[0] != "":
		out["path"] = paths[0]
	case len(paths) == 2:
		out["source"], out["destination"] = paths[0], paths[1]
	}
	switch f := r.Facts.(type) {
	case engine.HashFacts:
		out["checksum"] = f.Hash
		if f.Diff != "" {
			out["diff"] = clip(f.Diff)
		}
	case engine.HalfFacts:
		out["left"], out["checkpoint"] = f.Left, f.Checkpoint
	case engine.PartFacts:
		out["taken_back"], out["checkpoints"] = f.Back, f.Checkpoints
	case *guardfs.TooLargeError:
		out["size"], out["most"] = f.Size, f.Max
	case engine.SizeFacts:
		out["size"], out["most"] = f.Size, f.Max
	case *matching.PatternError:
		if f.Suggest != "" {
			out["suggested_pattern"] = f.Suggest
		}
	case *edit.TooLargeError:
		out["size"], out["most"] = f.Size, f.Max
	case *guardfs.MissingParentError:
		out["missing"] = f.Missing
	case *guardfs.SymlinkError:
		out["target"] = f.Target
	case *guardfs.NotRegularError:
		out["kind"] = f.Kind
	case *args.Error:
		out["hint"] = f.Hint
	case *engine.CountError:
		out["found"], out["expected"], out["skipped"] = f.Total, f.Expected, skippedOf(f.Replacing)
	case []engine.Blocked:
		blocked := []string{}
		for _, b := range f[:min(len(f), 20)] {
			blocked = append(blocked, b.Path)
		}
		out["blocked"] = blocked
	}
	if r.Cause == engine.ApprovalStale {
		out["diff"] = clip(fmt.Sprint(r.Facts))
	}
	return out
}

// clip bounds a diff.
func clip(diff string) string {
	const most = 16 << 10
	if len(diff) <= most {
		return diff
	}
	return strings.ToValidUTF8(diff[:most], "") + "\n…"
}
