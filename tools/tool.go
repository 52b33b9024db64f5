package tools

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"

	"moltisfs/internal/args"
	"moltisfs/internal/dialect"
	"moltisfs/internal/engine"
	"moltisfs/internal/policy"
)

// Effect says what a tool may do to the world; the MCP annotations follow.
type Effect uint8

const (
	// Reads changes nothing.
	Reads Effect = iota
	// Overwrites replaces or removes what was there.
	Overwrites
)

// A Tool is one row of [All]: everything a surface needs to list and run it.
type Tool struct {
	Name, Title string
	// Description is for a model that knows the tool by heart: only what differs or surprises.
	Description string
	Effect      Effect
	Idempotent  bool
	// Follows are tools that this one does the work of by another road. It is denied with the last of
	// them, unless it is allowed by name.
	Follows []string

	// OwnTime says that the tool sets its own deadline, as a search does, or takes what it takes, as a
	// restore of many files does.
	OwnTime bool

	Search Search

	aliases []args.Alias // other agents' names for the arguments

	// answers has an empty one of each kind of success: their types are the schema of the answers.
	answers []Payload

	args *args.Spec        // schema and decoder
	is   func(in any) bool // whether these are its arguments, as a struct
	run  func(context.Context, *Suite, *engine.Call, any) (Payload, error)
	at   func(path string, there bool) any

	output func() json.RawMessage // the schema of its answers
}

// All is every tool, in the order in which it is listed. Order matters: models and prompt caches
// see it. It is a copy: what a host changes in it changes no suite.
func All() []Tool {
	out := slices.Clone(table)
	for i := range out {
		out[i].Follows = slices.Clone(out[i].Follows)
	}
	return out
}

var table = []Tool{
	readTool,
	writeTool,
	editTool,
	multiEditTool,
	notebookEditTool,
	globTool,
	grepTool,
	checkpointsListTool,
	checkpointDiffTool,
	checkpointRestoreTool,
}

// A checker is an argument struct with rules beyond its types. Problems come
// back as *args.Error.
type checker interface{ check() error }

// An asker is an argument struct that names a part of a tree or of a file.
type asker interface{ asked() engine.Asked }

// A dryRunner is an argument struct that can ask what would be changed.
type dryRunner interface{ dryRun() bool }

// define makes a row out of a typed run function. A is the argument struct. at makes arguments that
// have the tool work on a path: tests send them for every strange one. there says that a file with
// the text "a" is there.
func define[A any](t Tool, run func(context.Context, *Suite, *engine.Call, *A) (Payload, error),
	at func(path string, there bool) A) Tool {
	if len(t.answers) == 0 {
		panic("tools: " + t.Name + " has no answers")
	}
	t.at = func(path string, there bool) any { return at(path, there) }
	t.args = args.Of[A](&args.Names{Tool: t.Name, Changes: t.Effect != Reads, Aliases: t.aliases})
	t.output = sync.OnceValue(func() json.RawMessage {
		out, err := plainJSON(outputSchema(t.answers))
		if err != nil {
			panic("tools: a schema that can't be encoded: " + err.Error())
		}
		return out
	})
	t.is = func(in any) bool {
		switch in.(type) {
		case A, *A:
			return true
		}
		return false
	}
	t.run = func(ctx context.Context, s *Suite, c *engine.Call, in any) (Payload, error) {
		return run(ctx, s, c, in.(*A))
	}
	return t
}

// decode makes the argument struct of a call, checked. note says what was taken as what.
func (t *Tool) decode(raw json.RawMessage) (in any, note string, err error) {
	in, note, err = t.args.Take(raw)
	if err == nil {
		if a, ok := in.(checker); ok {
			err = a.check()
		}
	}
	return in, note, err
}

type badArgument = args.Error

// bad is an argument that can't be taken.
func bad(hint, format string, a ...any) error { return args.Errorf(hint, format, a...) }

// allowed reports whether [tools.policy] leaves the tool.
func (t *Tool) allowed(p policy.Tools) bool {
	return p.Allows(t.Name, t.Effect != Reads, t.Follows...)
}

// definition is what a model is told.
func (t *Tool) definition() Definition {
	return Definition{
		Name:         t.Name,
		Title:        t.Title,
		Description:  t.Description,
		InputSchema:  t.args.Schema(),
		OutputSchema: t.output(),
		ReadOnly:     t.Effect == Reads,
		Destructive:  t.Effect == Overwrites,
		Idempotent:   t.Idempotent || t.Effect == Reads,
		OpenWorld:    false,
		Search:       t.Search,
	}
}

// The names that several tools share. What others call a path, a glob or a text is theirs to say; a
// name is taken for what the tool that has it means by it.
const (
	fileNames = "path file filename filepath filepathname targetfile absolutepath absolutefilepath " +
		"fullpath fullfilepath pathname targetpath location filetoread filetoedit relativepath " +
		"relativeworkspacepath filelocation inputfile sourcefile uri fileuri document"
	dirNames = "directory dir folder dirpath directorypath folderpath root rootdir rootpath cwd " +
		"basepath basedir searchpath searchdir searchdirectory searchin targetdirectory targetdir " +
		"workdir workingdirectory location absolutepath fullpath filepath file directories " +
		"paths searchpaths startpath startdir relativeworkspacepath"
	notNames = "exclude excludes excludepattern excludepatterns excludeglob excludeglobs ignore " +
		"ignorepattern ignorepatterns ignoreglobs exclusions excludeddirs excludedirs"
	oldNames = "oldtext oldstr old oldcode oldcontent oldvalue oldsnippet oldblock search searchtext " +
		"searchstring searchblock searchfor searchcontent find findtext findstring target targettext " +
		"targetcontent targetstring original originaltext originalcode originalcontent " +
		"originalstring texttoreplace texttofind codetoreplace"
	newNames = "newtext newstr new newcode newcontent newvalue newsnippet newblock replace " +
		"replacetext replacestring replaceblock replacewith replacement replacementtext " +
		"replacementstring replacementcontent replacementcode updatedtext updatedcode with"
	verbNames = "command action operation op"
	maxNames  = "maxresults maxmatches maxcount numresults resultlimit limit maxitems maxhits top " +
		"topk max"
	hiddenName = "hidden includehidden searchhidden showhidden dot"
	gitNames   = "respectgitignore respectignore usegitignore gitignore respectgitignorefiles"
	noGitNames = "noignore includeignored nogitignore"
	idNames    = "checkpointid checkpoint cp cpid snapshot snapshotid checkpointname"
)

// fileAliases are for the path of one file.
var fileAliases = []args.Alias{
	{Theirs: "path", Ours: "file_path", Quiet: true},
	{Theirs: fileNames, Ours: "file_path"},
}

// editAliases are for one replacement, alone or in a list.
var editAliases = []args.Alias{
	{Theirs: "oldstr", Ours: "old_string", Quiet: true},
	{Theirs: "newstr", Ours: "new_string", Quiet: true},
	{Theirs: oldNames, Ours: "old_string"},
	{Theirs: newNames, Ours: "replace_all", Turn: args.Switch},
	{Theirs: newNames, Ours: "new_string"},
	{Theirs: "before from", Ours: "old_string", Turn: args.Offered},
	{Theirs: "after to text content value updated insert", Ours: "new_string", Turn: args.Offered},
	{Theirs: "all global replaceallmatches replaceallinstances alloccurrences replacealloccurrences " +
		"allowmultiple allowmultiplereplacements allmatches replaceeverywhere", Ours: "replace_all"},
	{Theirs: "expectedreplacements count expectedoccurrences", Says: "1",
		Hint: "set replace_all to change every place"},
}

// timeAliases are for the points in time of checkpoints.
var timeAliases = []args.Alias{
	{Theirs: "turnid", Ours: "turn"},
	{Theirs: "after sincetime starttime newerthan", Ours: "since"},
	{Theirs: "tag", Ours: "label"},
}

// A bulky payload has members that Text says too: a brief answer, see [answer.Brief], goes without
// them. inText names all that may be left out; brief is a copy where they are empty, and names those
// that are.
type bulky interface {
	inText() []string
	brief() (Payload, []string)
}

// refusalKinds are those that a Refusal has.
var refusalKinds = []string{KindNotFound, KindPermissionDenied, KindTooLarge, KindNotRegularFile,
	KindPathDenied, KindBadRequest, KindSymlinkRefused, KindMustRead, KindModified, KindNoMatch,
	KindNotUnique, KindConflict, KindApprovalDenied, KindApprovalTimeout, KindApprovalStale,
	KindUnsupported, KindLimit, KindDeadline, KindPolicyError, KindIOError, KindUnavailable}

// inTextMember is the member of a brief answer that names what it goes without.
const inTextMember = "in_text"

// object is a JSON Schema.
type object = map[string]any

// outputSchema describes every payload that a tool can answer: its successes, which are open objects
// with the fields of their types; the refusals, which carry fields of their own; and what a hook may
// make of either.
func outputSchema(answers []Payload) object {
	known := slices.Clone(refusalKinds)
	var any []object
	for _, p := range answers {
		known = append(known, p.Kind())
		any = append(any, schemaOf(p))
	}
	text := object{"type": "string"}
	any = append(any, object{
		"properties": object{"kind": object{"enum": refusalKinds}, "error": text, "hint": text},
		"required":   []string{"kind", "error", "hint"},
	}, object{"properties": object{"kind": object{"not": object{"enum": known}}}})
	return object{"type": "object", "properties": object{"kind": text}, "required": []string{"kind"},
		"anyOf": any}
}

func schemaOf(p Payload) object {
	properties := object{"kind": object{"const": p.Kind()}}
	required := membersOf(reflect.TypeOf(p).Elem(), properties)
	if c, ok := p.(*Content); ok {
		required = append(required, membersOf(reflect.TypeOf(c.Body).Elem(), properties)...)
	}
	var left []string
	if b, ok := p.(bulky); ok {
		left = b.inText()
	}
	if left != nil {
		properties[inTextMember] = object{"type": "array", "items": object{"enum": left}}
	}
	required = slices.DeleteFunc(required, func(name string) bool { return slices.Contains(left, name) })
	return object{"properties": properties, "required": append([]string{"kind"}, required...)}
}

// membersOf adds the members of a struct as encoding/json writes it, and gives those that are always
// there.
func membersOf(t reflect.Type, properties object) (required []string) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			required = append(required, membersOf(f.Type, properties)...)
			continue
		case !f.IsExported(), name == "-":
			continue
		}
		properties[name] = valueOf(f.Type)
		if !strings.Contains(rest, "omit") {
			required = append(required, name)
		}
	}
	return required
}

// valueOf is the schema of a member's value.
func valueOf(t reflect.Type) object {
	switch t.Kind() {
	case reflect.Interface:
		return object{} // anything: the arguments of a call to make next
	case reflect.Pointer:
		v := valueOf(t.Elem())
		if v["type"] != nil {
			v["type"] = []any{v["type"], "null"}
		}
		return v
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Float64:
		return object{"type": "number"}
	case reflect.Int, reflect.Int64:
		return object{"type": "integer"}
	case reflect.Slice:
		return object{"type": "array", "items": valueOf(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": valueOf(t.Elem())}
	case reflect.Struct:
		properties := object{}
		required := append([]string{}, membersOf(t, properties)...)
		return object{"type": "object", "properties": properties, "required": required}
	}
	panic("tools: no schema for " + t.String()) // found by any test that lists the tools
}

var _ dialect.Brief = answer{}

// Brief is the JSON without what Text says too.
func (a answer) Brief() ([]byte, error) {
	b, ok := a.Payload.(bulky)
	if !ok {
		return a.JSON(false)
	}
	short, left := b.brief()
	if left == nil {
		return answer{short}.JSON(false)
	}
	out, err := Encode(short)
	if err != nil {
		return nil, err
	}
	return withoutEmpty(withoutBytes(out), left)
}

// withoutEmpty takes empty members out of an encoded object, which are not its last, and names them
// at its end. No text can be mistaken for one: within a string its quotes would be escaped.
func withoutEmpty(body []byte, names []string) ([]byte, error) {
	s := string(body)
	for _, n := range names {
		for _, empty := range []string{`""`, `[]`} {
			s = strings.Replace(s, `,"`+n+`":`+empty, "", 1)
		}
	}
	list, err := plainJSON(names)
	if err != nil {
		return nil, err
	}
	return []byte(strings.TrimSuffix(s, "}") + `,"` + inTextMember + `":` + string(list) + "}"), nil
}
