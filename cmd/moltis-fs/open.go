package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"

	"moltisfs/config"
	"moltisfs/internal/approval"
	"moltisfs/internal/doctor"
	"moltisfs/internal/engine"
	"moltisfs/tools"
)

// suiteOptions are those of every command that opens the suite.
func suiteOptions(more ...option) []option {
	return append(more,
		configOption(), policiesOption(),
		opt("data-dir", "DIR",
			"for records, checkpoints and locks; else $MOLTIS_DATA_DIR, else ~/.moltis-fs"),
		opt("root", "DIR", "the workspace root; nothing outside may be touched, whatever the "+
			"configuration allows"),
		opt("principal", "NAME", "who calls, for records and read history; \"local\" unless told"),
		opt("session", "NAME", "whose history of reads and checkpoints counts; see mcp, and \"default\" for call"),
	)
}

func configOption() option {
	return opt("config", "FILE", "the configuration; else $MOLTIS_CONFIG, else "+
		"$XDG_CONFIG_HOME/moltis-fs/moltis.toml (~/.config without that), else the defaults")
}

// configPlace is where a configuration is found that nobody names: with the user's own, never in a
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

// loadConfig reads the configuration that holds where file is given, from a file or, with "", the
// defaults.
func (in *invocation) loadConfig(file string) (cfg config.Config, from string, err error) {
	if cfg, from, err = in.readConfig(file); err == nil {
		err = in.overridePolicies(&cfg)
	}
	return cfg, from, err
}

func (in *invocation) readConfig(file string) (cfg config.Config, from string, err error) {
	if from = in.findConfig(file); from == "" {
		cfg = config.Default()
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
			hint = fmt.Sprintf("%s config example %s writes one with every key", program, from)
		}
		return cfg, from, misuse(hint, "reading the configuration: %v", err)
	}
	cfg, err = config.Decode(data, from)
	cfg.Tools.FS.ReadOnly = cfg.Tools.FS.ReadOnly || in.given("read-only")
	return cfg, from, err
}

// configured says whether there is a configuration.
func (in *invocation) configured() bool { return in.findConfig(in.option("config")) != "" }

// openEngine opens what dialects stand on, as the command line says, for calls of an agent, and says
// what is doubtful in the configuration. approver may be nil.
func (in *invocation) openEngine(approver tools.Approver,
	onRecord string) (*engine.Engine, config.Config, error) {
	e, cfg, err := in.openEngineAs(approver, func(_ *config.Config, o *tools.Options) {
		o.Program.Name = onRecord
	})
	if err == nil {
		in.warnOf(cfg)
	}
	return e, cfg, err
}

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

// openEngineAs is openEngine after change has adapted configuration and options.
func (in *invocation) openEngineAs(approver tools.Approver,
	change func(*config.Config, *tools.Options)) (*engine.Engine, config.Config, error) {
	cfg, from, err := in.loadConfig(in.option("config"))
	if err != nil {
		return nil, cfg, unusableConfig(err, from)
	}
	root, err := in.root()
	if err != nil {
		return nil, cfg, err
	}
	rooted, err := cfg.At(root)
	if err != nil {
		locate(from, problemsOf(err))
		return nil, cfg, misuse("", "%v", err)
	}
	dir, earlier, err := in.dataDir()
	if err != nil {
		return nil, cfg, err
	}
	self, err := ownProgram()
	if err != nil {
		return nil, cfg, err
	}
	protect, err := in.ownFiles(from, self, cfg.Tools.FS)
	if err != nil {
		return nil, cfg, err
	}
	protect = append(protect, earlier...)
	identities, err := in.identities()
	if err != nil {
		return nil, cfg, err
	}
	o := tools.Options{
		Identities: identities, Progress: progressOn(in.err),
		DataDir: dir, Root: root, Approver: approver, Protect: protect, Worker: []string{self,
			workerCommand().name}, GitUser: in.gitUser(&rooted),
		Logger: slog.New(slog.NewTextHandler(in.err, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	change(&cfg, &o)
	if in.option("sandbox") != "" {
		return in.engineIn(cfg, o)
	}
	chosen, err := in.definitionsOf(cfg)
	if _, ok := errors.AsType[*exitError](err); ok { // else opening finds it too, with its place
		return nil, cfg, err
	}
	e, err := tools.OpenEngine(cfg, o, loadPolicies, chosen...)
	if d, ok := errors.AsType[*tools.DataDirError](err); ok {
		return nil, cfg, misuse(d.Hint(), "%v", d)
	}
	if ps := problemsOf(err); len(ps) > 0 {
		if from == "" || in.option("root") != "" { // what is wrong need not stand in the file
			return nil, cfg, misuse("", "%v", err)
		}
		locate(from, ps)
		return nil, cfg, unusableConfig(err, from)
	}
	return e, rooted, err
}

// ownFiles gives our program, the configuration, and the places where it and the data are by default,
// whichever is in use: another start obeys what is put there. It refuses what obeyed does.
func (in *invocation) ownFiles(from, self string, cfg config.FS) ([]string, error) {
	protect := []string{self, startedAs(self)}
	if place := in.configPlace(); place != "" {
		protect = append(protect, filepath.Dir(place))
	}
	for _, home := range homes() {
		protect = append(protect, filepath.Join(home, ".moltis-fs"), filepath.Join(home, ".config", program))
	}
	for _, file := range []string{from, in.policiesFile(), in.env("MOLTIS_CONFIG"), in.env("MOLTIS_DATA_DIR")} {
		if file == "" {
			continue
		}
		abs, err := absolute(file)
		if err != nil {
			return nil, fmt.Errorf("finding the configuration: %w", err)
		}
		protect = append(protect, abs)
	}
	return protect, in.obeyed(from, cfg)
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

// problemsOf are what is wrong with a configuration, none when err is about something else.
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
