package guardfs

import (
	"io/fs"
	"strconv"
	"strings"
)

// Expect is what is to be at a name when it is changed. The zero Expect is nothing.
type Expect struct {
	ID Identity // which object
	// Like, where it has a hash, is what the object has to be like as well: kind, mode, owner and
	// content.
	Like *Before
}

// Found is what Load found, to be found again.
func Found(b *Before) Expect {
	if b == nil || !b.Exists {
		return Expect{}
	}
	return Expect{b.Info.ID, b}
}

func (e Expect) nothing() bool { return e == Expect{} }

// content is what Like says of the content, nil if it says nothing.
func (e Expect) content() *Before {
	if e.Like != nil && e.Like.Hash == "" {
		return nil
	}
	return e.Like
}

// NewObject is what Hold makes. The zero NewObject is nothing.
type NewObject struct {
	Kind    Kind
	Content []byte // of a file; of a link: its target
	// Source has the content of a file in place of Content: its first Size bytes. It has to stay as
	// it was when it was opened.
	Source *File
	Size   int64
	// Like has it carry the metadata of that object, less what Made.Dropped will say. Without Like and
	// Meta a new file has mode 0666 less the umask, or the directory's default ACL.
	Like *Before
	Meta *Metadata // carry exactly this, modification time included; for a restore. Like is ignored
	// KeepSpecialBits keeps setuid, setgid and file capabilities, where the host lets us.
	KeepSpecialBits bool
	Mode            fs.FileMode // of a directory without Like and Meta, less the umask; 0: 0o777
	Sync            bool        // Sync will be called
	// Private keeps a file to its owner until Reveal, because the directory that it is to be in is
	// more closed than the one that it is made in.
	Private bool
	// Open keeps a file open until Drop, and nameless until Swap where the system can do that. Its
	// place has to be the one that it is swapped with.
	Open bool
}

// Made is what Hold has made. Of nothing it is what was found under the name.
type Made struct {
	Info    Info
	Meta    Metadata // of a new thing that nothing was carried over to: what the system gave it
	Dropped []string // as in Published
	Hash    string   // of what came from NewObject.Source
}

// Expect is what was made, to be found again.
func (m *Made) Expect() Expect {
	if m.Info.Kind == KindAbsent {
		return Expect{}
	}
	return Expect{m.Info.ID, &Before{Exists: true, Info: m.Info}}
}

// HoldName is the name of the n-th hold of the operation that has that tag, and of the process that
// has the other one. 0 is that of an operation which may be on record nowhere: see Sweep.
func HoldName(tag string, n int, process string) string {
	name := tempPrefix + tag + "-" + strconv.Itoa(n)
	if process != "" {
		name += "-" + process
	}
	return name + tempSuffix
}

// ParseHold tells whose a hold is by its name: the tag of the operation, and that of the process.
func ParseHold(name string) (tag, process string, ok bool) {
	middle, ok := strings.CutPrefix(name, tempPrefix)
	middle, ok2 := strings.CutSuffix(middle, tempSuffix)
	parts := strings.Split(middle, "-")
	if !ok || !ok2 || len(parts) < 2 || len(parts) > 3 || !isTag(parts[0]) {
		return "", "", false
	}
	if n, err := strconv.Atoi(parts[1]); err != nil || strconv.Itoa(n) != parts[1] {
		return "", "", false
	}
	if len(parts) == 3 {
		process = parts[2]
	}
	return parts[0], process, process == "" || isTag(process)
}

// fate is what becomes of a name when a process is no more.
type fate int

const (
	alien  fate = iota // not that process's
	needed             // its operation is not over
	goes               // nobody ever had it by another name
	keeps              // it may be somebody's: it gets a lasting name
)

// fateOf says what becomes of what has that name and is i. A file under the number 0 is kept unless
// it has another name: its process died between the rename and the look at what came out, which
// somebody may have written right before.
func fateOf(name, process string, i *Info, done func(operation string) bool) fate {
	operation, of, ok := parse(name)
	file := i.Kind == KindFile
	switch {
	case !ok || of != process:
		return alien
	case operation == "" && !file && i.Kind != KindSymlink:
		return keeps
	case operation == "":
		return goes
	case !done(operation):
		return needed
	case file && i.Links <= 1 && strings.HasPrefix(name[len(tempPrefix)+TagLen:], "-0"):
		return keeps
	}
	return goes
}

func isTag(s string) bool {
	return len(s) == TagLen && strings.Trim(s, "0123456789abcdef") == ""
}
