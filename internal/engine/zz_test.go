package engine_test
import ("testing";"fmt";"moltisfs/internal/engine";"moltisfs/checkpoint")
func dbg(t *testing.T, x *tree, err error) { if r := engine.Reason(err); r != nil { if f, ok := r.Facts.(engine.PartFacts); ok { t.Log(fmt.Sprintf("%+v", engine.Reason(f.Err).Facts)) ; t.Logf("%+v", f)} else { t.Logf("%+v", r.Facts) } }
 page, _ := x.Checkpoints(ctx, x.call("s"), checkpoint.Filter{Limit: 14})
 for _, c := range page.Checkpoints { s := fmt.Sprint(c.ID, " ", c.Kind, " undo_of ", c.UndoOf, " turn ", c.Turn)
 full, e := x.Checkpoint(ctx, x.call("s"), c.ID); if e == nil { for _, ch := range full.Changes { s += fmt.Sprint("\n    ", ch.Path[len(x.ws):], " ", ch.Role, " ", ch.Before.Kind, "->", ch.After.Kind) } }
 t.Log(s) } }
