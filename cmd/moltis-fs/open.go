package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"moltisfs/checkpoint"
	"moltisfs/config"
	"moltisfs/grep/ignore"
	"moltisfs/internal/approval"
	"moltisfs/internal/args"
	"moltisfs/internal/doctor"
	"moltisfs/internal/engine"
	"moltisfs/internal/glob"
	"moltisfs/internal/policy"
	"moltisfs/internal/policy/rego"
	"moltisfs/tools"
)

// configPlace is the path of a configuration that nobody names: with the user's own, never in a
// workspace, which agents write to. "" where there is no such place.
func (in *invocation) configPlace() string {
	dir := in.env("XDG_CONFIG_HOME")
	if !filepath.IsAbs(dir) { // the specification has relative ones passed over
		home, err := os.UserHomeDir()
		if err != nil || !filepath.IsAbs(home) {
			return ""
		}
		dir = filepath.Join(home, ".config")
	}
	return filepath.Join(dir, program, "moltis.toml")
}

// findConfig is the configuration that holds: the one given, else that of the environment, else the
// one in its place. "" is none. One that can't be looked at is not none.
func (in *invocation) findConfig(given string) string {
	if from := cmp.Or(given, in.env("MOLTIS_CONFIG")); from != "" {
		return from
	}
	from := in.configPlace()
	_, err := os.Lstat(from)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return ""
	}
	return from
}

// loadConfig reads the configuration that holds where file is given. Without any it gives the defaults, with
// checkpoints on.
func (in *invocation) loadConfig(file string) (cfg config.Config, from string, err error) {
	if in.remote != nil {
		cfg, from = in.remote.config()
		return cfg, from, nil
	}
	if cfg, from, err = in.readConfig(file); err == nil {
		err = in.overridePolicies(&cfg)
	}
	switch {
	case err != nil:
	case in.given("tool-prefix"):
		cfg.Tools.FS.ToolPrefix = in.option("tool-prefix")
		if err = cfg.Check(); err != nil { // the rest was right
			err = misuse(seeHelp(in.command), "--tool-prefix: %s", strings.TrimPrefix(err.Error(), "tools.fs.tool_prefix: "))
		}
	case in.command.name == "call":
		cfg.Tools.FS.ToolPrefix = "" // a person has no other tools
	}
	return cfg, from, err
}

func (in *invocation) readConfig(file string) (cfg config.Config, from string, err error) {
	if from = in.findConfig(file); from == "" {
		cfg = config.Default()
		cfg.Tools.FS.CheckpointBeforeMutation = true // who wrote no configuration can undo
		cfg.Tools.FS.ReadOnly = in.given("read-only")
		return cfg, "", nil
	}
	info, err := os.Stat(from)
	if err == nil && !info.Mode().IsRegular() && from != standardInput {
		return cfg, from, misuse("name a TOML file", "the configuration %s is not a file", from)
	}
	var data []byte
	if err == nil && info.Size() > config.MaxSize {
		return cfg, from, misuse("at most 1 MiB is read",
			"%s: %d bytes are too many for a configuration file", from, info.Size())
	}
	if err == nil {
		data, err = os.ReadFile(from)
	}
	if err != nil {
		hint := ""
		if errors.Is(err, fs.ErrNotExist) {
			hint = fmt.Sprintf("%s config example > %s writes one with every key", program, shellWord(from))
		}
		return cfg, from, misuse(hint, "reading the configuration: %v", err)
	}
	cfg, err = config.Decode(data, from)
	if abs, err := filepath.Abs(from); err == nil {
		cfg.Tools.FS.DenyIn(abs) // it goes on record
	}
	cfg.Tools.FS.ReadOnly = cfg.Tools.FS.ReadOnly || in.given("read-only")
	return cfg, from, err
}

// configured says whether there is a configuration.
func (in *invocation) configured() bool { return in.findConfig(in.option("config")) != "" }

// warnOf warns on standard error of doubtful settings in cfg, which an engine was opened with.
func (in *invocation) warnOf(cfg config.Config) {
	found, root := cfg.Warnings(), ""
	if in.option("root") != "" {
		root = cfg.Tools.FS.WorkspaceRoot // the same, absolute
	}
	if !cfg.Tools.Sandbox.All() { // else the rules are about paths there
		found = append(found, engine.IdleRules(cfg.Tools.FS, root)...)
	}
	in.warn(locate(in.findConfig(in.option("config")), found))
}

// ownProgram is where we are. On Linux the kernel tells by /proc, and so it does the true names of
// files: nothing works without it.
func ownProgram() (string, error) {
	self, err := os.Executable()
	if err == nil {
		return self, nil
	}
	hint := ""
	if _, no := os.Lstat("/proc/self/exe"); no != nil && runtime.GOOS == "linux" {
		hint = "/proc is not mounted: mount -t proc proc /proc, or start the container or chroot with it"
	}
	return "", &exitError{status: exitBroken, what: "finding our own program: " + err.Error(), hint: hint}
}

// programName is how the program is on record.
func (in *invocation) programName() string {
	return program + " " + in.command.name + " " + readBuild().Version
}

// warn says what is doubtful in a configuration.
func (in *invocation) warn(warnings []*config.Problem) {
	for _, w := range warnings {
		fmt.Fprintf(in.err, "%s: warning: %s\n", program, approval.Escape(w.Error(), false))
	}
}

// settings are the configuration, the root and the directories of a command, before anything is opened.
type settings struct {
	file string        // of the configuration; "": there is none
	cfg  config.Config // as it stands there
	at   config.Config // the same with --root put in
	root string        // of --root; "": none
	dir  string        // the data directory of this machine
	self string        // our own program
}

func (in *invocation) settings() (s settings, err error) {
	if s.cfg, s.file, err = in.loadConfig(in.option("config")); err != nil {
		return s, unusableConfig(err, s.file)
	}
	if s.root, err = in.root(); err != nil {
		return s, err
	}
	if s.at, err = s.cfg.At(s.root); err != nil {
		locate(s.file, problemsOf(err))
		return s, misuse("", "%v", err)
	}
	if s.dir, err = in.hostData(); err == nil {
		s.self, err = ownProgram()
	}
	return s, err
}

// roots are the directories that are open: --root, or the beginnings of allow_paths.
func (s *settings) roots() []string {
	if s.root != "" {
		return []string{s.root}
	}
	return opened(s.at.Tools.FS.AllowPaths)
}

// openEngineAs opens the engine that dialects work on, as the command line says, after change has
// adapted configuration and options. approver may be nil.
func (in *invocation) openEngineAs(approver tools.Approver,
	change func(*config.Config, *tools.Options)) (*engine.Engine, config.Config, error) {
	s, err := in.settings()
	if err != nil {
		return nil, s.cfg, err
	}
	cfg, from := s.cfg, s.file
	protect, err := in.ownFiles(&s)
	if err != nil {
		return nil, cfg, err
	}
	identities, err := in.identities()
	if err != nil {
		return nil, cfg, err
	}
	o := tools.Options{
		Identities: identities,
		DataDir:    s.dir, Root: s.root, Approver: approver, Protect: protect,
		Worker: []string{s.self, workerCommand().name}, GitUser: in.gitUser(), Environ: os.Environ(),
		Logger: in.logger(slog.LevelWarn),
	}
	change(&cfg, &o)
	if in.option("sandbox") != "" {
		return in.engineIn(cfg, o)
	}
	chosen, err := in.definitionsOf(cfg)
	if _, ok := errors.AsType[*exitError](err); ok { // else opening finds it too, with its place
		return nil, cfg, err
	}
	f, err := in.join(cfg)
	if err != nil {
		return nil, cfg, err
	}
	e, err := tools.OpenEngine(cfg, o, loadPolicies, f, chosen...)
	if d, ok := errors.AsType[*tools.DataDirError](err); ok {
		return nil, cfg, misuse(d.Hint(), "%v", d)
	}
	if isType[*checkpoint.SettingError](err) {
		return nil, cfg, storeError(err)
	}
	if ps := problemsOf(err); len(ps) > 0 {
		if from == "" || in.option("root") != "" { // what is wrong need not stand in the file
			return nil, cfg, misuse("", "%v", err)
		}
		locate(from, ps)
		return nil, cfg, unusableConfig(err, from)
	}
	return e, s.at, err
}

// ownFiles gives our program, the configuration, and the places where it and the data are by default,
// whichever is in use: another start obeys what is put there. It refuses what obeyed does.
func (in *invocation) ownFiles(s *settings) ([]string, error) {
	protect := []string{s.self, startedAs(s.self)}
	if place := in.configPlace(); place != "" {
		protect = append(protect, filepath.Dir(place))
	}
	for _, home := range homes() {
		protect = append(protect, filepath.Join(home, ".moltis-fs"), filepath.Join(home, ".config", program))
	}
	for _, file := range []string{s.file, in.policiesFile(), in.env("MOLTIS_CONFIG"), in.env("MOLTIS_DATA_DIR")} {
		if file == "" {
			continue
		}
		abs, err := absolute(file)
		if err != nil {
			return nil, fmt.Errorf("finding the configuration: %w", err)
		}
		protect = append(protect, abs)
	}
	return protect, in.obeyed(s.file, s.cfg.Tools.FS)
}

// obeyed refuses a configuration, or a program that it has us run, that another user may have
// written: one that is neither ours nor root's, or that anybody may write to.
func (in *invocation) obeyed(from string, cfg config.FS) error {
	for _, file := range slices.Concat([]string{from, in.policiesFile()}, cfg.PolicyFiles(), hookFiles(cfg.Hooks)) {
		info, err := os.Stat(file)
		if err != nil || !info.Mode().IsRegular() {
			continue // who reads it says so
		}
		if who := doctor.Writable(info); who != "" {
			return misuse("make sure of what it says, then chown it to yourself and chmod go-w it", "%s %s", visible(file), who)
		}
	}
	return nil
}

// startedAs is the name by which we were started, when that leads to self, our program: it may be a
// link, as in a directory of the PATH. "" when it can't be told.
func startedAs(self string) string {
	name, err := exec.LookPath(os.Args[0])
	if err == nil {
		name, err = absolute(name)
	}
	a, aerr := os.Stat(name)
	b, berr := os.Stat(self)
	if errors.Join(err, aerr, berr) != nil || !os.SameFile(a, b) {
		return ""
	}
	return name
}

// absolute is path from the root on, with what it says of links and ".." left to the system.
func absolute(path string) (string, error) {
	if filepath.IsAbs(path) {
		return path, nil
	}
	wd, err := os.Getwd()
	return wd + string(filepath.Separator) + path, err
}

// unusableConfig is a configuration that a command other than config check met.
func unusableConfig(err error, from string) error {
	if e, ok := errors.AsType[*exitError](err); ok {
		return e
	}
	return misuse(fmt.Sprintf("fix the file; %s config check %s reports when it is valid", program,
		from), "%v", err)
}

// problemsOf gives the problems of a configuration that err holds, none if it is about something else.
func problemsOf(err error) (out []*config.Problem) {
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range all.Unwrap() {
			out = append(out, problemsOf(one)...)
		}
	} else if p, ok := errors.AsType[*config.Problem](err); ok {
		out = append(out, p)
	}
	return out
}

// locate adds to problems where in the file they stand, if it can still be read. "" is no file.
func locate(file string, problems []*config.Problem) []*config.Problem {
	if file == "" || len(problems) == 0 {
		return problems
	}
	if data, err := os.ReadFile(file); err == nil {
		config.Locate(data, file, problems...)
	}
	return problems
}

// root is the directory outside of which nothing may be touched: that of --root, as an absolute
// path, or "". A relative one depends on where we are started, so it may not be too wide.
func (in *invocation) root() (string, error) {
	given := in.option("root")
	if given == "" {
		return "", nil
	}
	abs, err := filepath.Abs(given)
	if err != nil {
		return "", fmt.Errorf("finding the root: %w", err)
	}
	if info, err := os.Stat(abs); err != nil || !info.IsDir() {
		return "", misuse("name a directory that exists", "the root %s is not a directory", given)
	}
	if what := tooWide(abs); what != "" && !filepath.IsAbs(given) {
		return "", in.wide("--root " + visible(given) + " is relative, and from here it is " + what)
	}
	return abs, nil
}

// implyRoot has the working directory for --root where neither that nor a configuration says what is
// open. It refuses one that is more than anybody's work, in which some desktop clients start us.
func (in *invocation) implyRoot() error {
	if in.option("root") != "" || in.configured() {
		return nil
	}
	wd, err := os.Getwd()
	if err != nil {
		return misuse("name a directory with --root", "the working directory can't be told: %v", err)
	}
	if what := tooWide(wd); what != "" {
		return in.wide("there is no --root and no configuration, and the working directory is " + what)
	}
	in.values["root"], in.implied = wd, true
	return nil
}

// wide refuses a root that nobody has named in full.
func (in *invocation) wide(why string) error {
	if in.command.name != "mcp" && in.command.name != "acp" { // a person has typed it
		return misuse("name the directory of the work, as "+program+" "+in.command.path+" --root ~/project; --root / opens everything", "%s", why)
	}
	return misuse(`add the directory of the work, as "args": ["`+in.command.path+
		`", "--root", "/home/you/project"]; --root / opens everything`, "%s", why)
}

// tooWide says what dir is, when it is the root of the file system, a home directory, or above one.
// A home directory is one of homes, or lies in /home or /Users.
func tooWide(dir string) string {
	if filepath.Dir(dir) == dir {
		return dir
	}
	at, err := os.Stat(dir)
	if err != nil {
		return ""
	}
	homes := homes()
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		real = dir
	}
	if up := filepath.Dir(real); up == "/home" || up == "/Users" {
		homes = append(homes, real)
	}
	for _, home := range append(homes, "/home/_", "/Users/_") {
		for up := filepath.Clean(home); filepath.Dir(up) != up; up = filepath.Dir(up) {
			if info, err := os.Stat(up); err != nil || !os.SameFile(info, at) {
				continue
			}
			if up == filepath.Clean(home) {
				return "the home directory " + dir
			}
			return dir + ", which holds home directories"
		}
	}
	return ""
}

// homes gives the home directories of the environment and of the account.
func homes() (dirs []string) {
	if home, err := os.UserHomeDir(); err == nil && filepath.IsAbs(home) {
		dirs = append(dirs, home)
	}
	if account, err := user.Current(); err == nil && filepath.IsAbs(account.HomeDir) {
		dirs = append(dirs, account.HomeDir)
	}
	return dirs
}

// tellOpen says in one line on standard error what is open to agents, who approves changes, whether they can be undone, and
// where the data is.
func (in *invocation) tellOpen(cfg config.Config, open, approver string) {
	dir, err := in.dataDir()
	if err != nil {
		return // the engine is open, so it was found
	}
	undo := "on"
	if why := in.undoOff(cfg); why != "" {
		undo = "off (" + why + ")"
	}
	switch {
	case cfg.Tools.FS.ReadOnly:
		approver = "nobody, nothing can be changed"
	case !cfg.Tools.FS.RequireApproval:
		approver = "nobody, require_approval is false"
	}
	fmt.Fprintf(in.err, "%s: open is %s; changes are approved by %s; undo: %s; data is in %s\n", program, visible(open), approver, undo, visible(dir))
}

// openText describes for people the paths that the configuration cfg and --root open to agents.
func (in *invocation) openText(cfg config.Config) (open string) {
	file, root := in.findConfig(in.option("config")), in.option("root")
	fs := cfg.Tools.FS
	if root != "" {
		root = fs.WorkspaceRoot // the same, absolute
	}
	switch {
	case in.implied:
		open = root + ", the working directory, and nothing else (no --root, no configuration)"
	case cfg.Tools.Sandbox.All():
		open = fmt.Sprintf("what %s allows in the sandbox", file)
	case root != "" && file != "":
		open = fmt.Sprintf("what %s allows in %s (--root)", file, root)
	case root != "":
		open = root + " and nothing else (--root)"
	case len(fs.AllowPaths) == 0:
		open = fmt.Sprintf("everything that this account can reach and %s does not deny", file)
	default:
		open = fmt.Sprintf("what %s allows: %d allow_paths, %d deny_paths", file, len(fs.AllowPaths),
			len(fs.DenyPaths))
	}
	if what := lifted(fs); what != "" {
		open += "; not protected: " + what
	}
	return open
}

// lifted names the protected classes and paths that the configuration fs opens; "" for none.
func lifted(fs config.FS) string {
	var out []string
	if fs.ProtectSecret == "allow" {
		out = append(out, "class secret")
	}
	if fs.ProtectExec == "allow" {
		out = append(out, "class exec")
	}
	return strings.Join(append(out, fs.Unprotected...), ", ")
}

// dataDir is the directory of our own files, or of those of --sandbox, as an absolute path.
func (in *invocation) dataDir() (string, error) {
	dir, err := in.hostData()
	if err == nil {
		dir, err = in.sandboxDir(dir)
	}
	return dir, err
}

func (in *invocation) hostData() (dir string, err error) {
	if dir = in.option("data-dir"); dir == "" {
		if dir = in.env("MOLTIS_DATA_DIR"); dir != "" && !filepath.IsAbs(dir) {
			// Each program that has the variable starts somewhere else.
			return "", misuse("give an absolute path there; --data-dir takes a relative one",
				"MOLTIS_DATA_DIR is the relative path %s", visible(dir))
		}
	}
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil || !filepath.IsAbs(home) {
			return "", misuse("name one with --data-dir or MOLTIS_DATA_DIR",
				"there is no home directory for the data directory to be in")
		}
		return filepath.Join(home, ".moltis-fs"), nil
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", fmt.Errorf("finding the data directory: %w", err)
	}
	return dir, nil
}

// gitUser says where the user's git configuration is, by the rules of git-config(1).
func (in *invocation) gitUser() ignore.User {
	home, err := os.UserHomeDir()
	if err != nil {
		home = ""
	}
	u := ignore.User{Home: filepath.ToSlash(home), XDG: filepath.ToSlash(in.env("XDG_CONFIG_HOME")),
		Read: readGitConfig}
	add := func(name string) { u.Files = append(u.Files, filepath.ToSlash(name)) }
	switch system := in.env("GIT_CONFIG_SYSTEM"); {
	case in.env("GIT_CONFIG_NOSYSTEM") != "":
	case system != "":
		add(system)
	default:
		add("/etc/gitconfig")
	}
	if global := in.env("GIT_CONFIG_GLOBAL"); global != "" {
		add(global)
		return u
	}
	switch {
	case u.XDG != "":
		add(filepath.Join(u.XDG, "git", "config"))
	case home != "":
		add(filepath.Join(home, ".config", "git", "config"))
	}
	if home != "" {
		add(filepath.Join(home, ".gitconfig"))
	}
	return u
}

// readGitConfig reads a configuration file of git's, or as much of it as git's rules may be long.
func readGitConfig(name string) ([]byte, error) {
	i, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !i.Mode().IsRegular() {
		return nil, fs.ErrInvalid // a fifo would have us wait for ever
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // nothing was written
	return io.ReadAll(io.LimitReader(f, ignore.MaxFile))
}

const policiesForm = `{"filesystem": {"mode": "all", "policies": [{"url": "file:///etc/fs.rego"}]}}`

// overridePolicies puts what --policies-json says in the place of what the configuration does.
func (in *invocation) overridePolicies(cfg *config.Config) error {
	if !in.given("policies-json") {
		return nil
	}
	text, file := in.option("policies-json"), in.policiesFile()
	if file != "" {
		data, err := readAtMost(file, config.MaxSize)
		if err != nil {
			return misuse("give JSON, or a file with it", "reading the policies: %v", err)
		}
		text = string(data)
	}
	mode, policies, err := policiesOf(text)
	if err != nil {
		return misuse("it looks like "+policiesForm, "--policies-json: %v", err)
	}
	fs := &cfg.Tools.FS
	if mode == "" { // the configuration holds
		fmt.Fprintf(in.err, "%s: warning: --policies-json has no entry \"filesystem\"\n", program)
		return nil
	}
	fs.PoliciesMode, fs.Policies = mode, policies
	return nil
}

// policiesFile is the file that --policies-json names, "" where it is the text itself.
func (in *invocation) policiesFile() string {
	if text := in.option("policies-json"); !strings.HasPrefix(strings.TrimSpace(text), "{") {
		return text
	}
	return ""
}

// policiesOf are the policies of a text, as the configuration has them; mode is "" where it has none.
// Entries beside "filesystem" are about what this program does not do.
func policiesOf(text string) (mode string, policies []string, err error) {
	const entry = "filesystem"
	var all map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return "", nil, err
	}
	for name := range all {
		if name != entry && args.Nearest(name, []string{entry}) != "" {
			return "", nil, fmt.Errorf("there is no entry %q; did you mean %s?", name, entry)
		}
	}
	if all[entry] == nil {
		return "", nil, nil
	}
	var fs struct {
		Mode     string `json:"mode"`
		Policies []struct {
			URL        string `json:"url"`
			PolicyPath string `json:"policy_path"`
			Rule       string `json:"rule"`
		} `json:"policies"`
	}
	strict := json.NewDecoder(bytes.NewReader(all[entry]))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&fs); err != nil {
		return "", nil, plainly(entry, err)
	}
	if mode = cmp.Or(fs.Mode, "all"); mode != "all" && mode != "any" {
		return "", nil, fmt.Errorf("the mode %q is neither \"all\" nor \"any\"", fs.Mode)
	}
	if fs.Policies == nil {
		return "", nil, errors.New("filesystem needs policies; [] allows everything")
	}
	for i, p := range fs.Policies {
		beside := p.PolicyPath // each kind has its own, and the other's does not count
		if u, err := url.Parse(p.URL); err == nil && u.Scheme == "file" {
			beside = p.Rule
		}
		if p.URL == "" || strings.ContainsAny(beside, " \t\n") {
			return "", nil, fmt.Errorf("filesystem.policies[%d] needs a url, and a rule without blanks", i)
		}
		policies = append(policies, strings.TrimSpace(strings.ReplaceAll(p.URL, " ", "%20")+" "+beside))
	}
	return mode, policies, nil
}

// plainly is an error of JSON without the names of our types.
func plainly(of string, err error) error {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		at := strings.TrimSuffix(of+"."+wrong.Field, ".")
		return fmt.Errorf("what is at %q can't be of type %s", at, wrong.Value)
	}
	return err
}

// loadPolicies makes the chain of policies for an engine.
func loadPolicies(mode string, policies []string) (policy.Chain, error) {
	chain, err := rego.Open(mode, policies)
	if err != nil {
		return nil, err
	}
	return chain, nil
}

// maxKeyFile is the most that a file of keys may hold.
const maxKeyFile = 1 << 20

// readArgument reads the file that an argument names, or standard input for "-".
func (in *invocation) readArgument(name string, most int64) ([]byte, error) {
	if name == "-" {
		return readUpTo(in.in, "standard input", most)
	}
	return readAtMost(name, most)
}

func readAtMost(file string, most int64) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // nothing was written through it
	return readUpTo(f, file, most)
}

func readUpTo(r io.Reader, name string, most int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("%s: more than %d bytes", name, most)
	}
	return data, err
}

// liesIn says whether a path is dir, or below it. Where that can't be told it is.
func liesIn(dir, path string) bool {
	in, err := filepath.Rel(dir, path)
	return err != nil || filepath.IsLocal(in)
}

// hookFiles are the programs of hooks and what they are given by an absolute name, as a script.
func hookFiles(h config.Hooks) (files []string) {
	for _, line := range h.Lines() {
		for _, word := range strings.Fields(line) {
			if filepath.IsAbs(word) {
				files = append(files, word)
			}
		}
	}
	return files
}

// standardInput is "-" as a file. It may be a pipe.
const standardInput = "/dev/stdin"

// opened are the directories that rules of allow_paths begin with.
func opened(rules []string) (dirs []string) {
	for _, rule := range rules {
		g, err := glob.CompileRule(rule, nil)
		if err != nil {
			continue // opening says so
		}
		for _, p := range g.Patterns() {
			dirs = append(dirs, "/"+strings.Join(p.Literal(), "/"))
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// identities are the lines of the identity file that are one.
func (in *invocation) identities() ([]string, error) {
	file := in.option("identity")
	if file == "" {
		return nil, nil
	}
	data, err := readAtMost(file, maxKeyFile)
	if err != nil {
		return nil, misuse("name a file as age-keygen writes it", "reading the identity: %v", err)
	}
	var out []string
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			out = append(out, line)
		}
	}
	if !slices.ContainsFunc(out, func(line string) bool { return strings.HasPrefix(line, "AGE-") }) {
		return nil, misuse("name a file as age-keygen writes it", "there is no age identity in %s",
			visible(file))
	}
	return out, nil
}
