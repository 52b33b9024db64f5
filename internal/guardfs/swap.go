package guardfs

import "io/fs"

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

// judgeSwap asks about both names, for what is to become of them.
func judgeSwap(p, hold *Place, out, in Expect) error {
	access := func(other Expect) Access {
		if other.nothing() {
			return Remove
		}
		return Modify
	}
	if p.hold == nil {
		if err := p.look(access(in)); err != nil {
			return err
		}
	}
	if hold.hold != nil {
		return nil
	}
	return hold.look(access(out))
}
