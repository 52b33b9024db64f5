package guardfs

import (
	"errors"
	"io/fs"
	"strconv"
	"strings"
	"syscall"
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
	Kind            Kind
	Content         []byte      // of a file; of a link: its target
	Like            *Before     // as in StageOptions
	Meta            *Metadata   // as in StageOptions
	KeepSpecialBits bool        // as in StageOptions
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
}

// Expect is what was made, to be found again.
func (m *Made) Expect() Expect {
	if m.Info.Kind == KindAbsent {
		return Expect{}
	}
	return Expect{m.Info.ID, &Before{Exists: true, Info: m.Info}}
}

// HoldName is the name of the n-th hold of the operation that has that tag, and of the process that
// has the other one. 0 is that of an operation which may be on record nowhere: see SweepHolds.
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

// onlyHold says that name, of a hold, has the number 0.
func onlyHold(name string) bool { return strings.HasPrefix(name[len(tempPrefix)+TagLen:], "-0") }

func isTag(s string) bool {
	return len(s) == TagLen && strings.Trim(s, "0123456789abcdef") == ""
}

// Foresee opens the place at the nearest directory above path that is there and stays, and lists
// what has to be made below it for path to be there: true names, topmost first. What gone answers
// true for counts as absent. name is the true name that path will have.
func (f *FS) Foresee(path string, gone func(name string) bool) (at *Place, missing []string, name string, err error) {
	at, err = f.PlaceLink(path)
	var noParent *MissingParentError
	switch {
	case err == nil:
		name = at.Object().True
	case errors.As(err, &noParent):
		if missing, name, err = f.Missing(path); err == nil && missing == nil {
			err = noParent // it has just been made
		}
		if err == nil {
			at, err = f.PlaceLink(missing[0])
		}
	case gone != nil && errors.Is(err, syscall.ENOTDIR):
		dir, base, serr := splitPlace(path)
		if serr != nil {
			return nil, nil, "", serr
		}
		above, between, parent, aerr := f.Foresee(dir, gone)
		switch {
		case aerr != nil:
			return nil, nil, "", aerr
		case !gone(parent):
			above.Close() //nolint:errcheck // nothing was written through it
			return nil, nil, "", err
		}
		return above, append(between, parent), join(parent, base), nil
	}
	for err == nil && gone != nil && gone(at.ParentTrue()) {
		dir := at.ParentTrue()
		at.Close() //nolint:errcheck // nothing was written through it
		missing = append([]string{dir}, missing...)
		at, err = f.PlaceLink(dir)
	}
	if err != nil {
		return nil, nil, "", err
	}
	return at, missing, name, nil
}
