package policy

import "strings"

// named are the names that have their class in any directory.
var named = merged(
	class(Secret, `.ssh .gnupg .azure .password-store .netrc _netrc .authinfo .pgpass
		.my.cnf .mylogin.cnf .npmrc .pypirc .git-credentials .htpasswd .vault-token .databrickscfg
		.s3cfg .boto .dockercfg .terraformrc terraform.rc credentials.tfrc.json rclone.conf
		.credentials.json oauth_creds.json application_default_credentials.json service-account.json
		service_account.json service-account-key.json serviceaccountkey.json .mozilla .thunderbird
		.librewolf key3.db key4.db cookies.sqlite cookies.binarycookies .claude.json .credentials .dev.vars
		.sentryclirc .cloudflared .ngrok2 deploy_key secring.gpg wallet.dat .histfile fish_history .lesshst
		.viminfo`),
	// What a shell or a program of a person reads by itself.
	class(Exec, `.bash_aliases .bash_completion .zshenv .zcompdump .inputrc .envrc .direnvrc .oh-my-zsh
		.p10k.zsh .fzf.bash .fzf.zsh .nvm .mise .mise.toml mise.toml .xinitrc .xsession .xsessionrc .pam_environment
		.vnc .forward .procmailrc .exrc .vim .nvim.lua .dir-locals.el .dir-locals-2.el .emacs .emacs.el
		.emacs.d .helix .ycm_extra_conf.py .tmux.conf .screenrc .gdbinit .lldbinit .pdbrc .irbrc .pryrc
		.yarnrc .yarnrc.yml sitecustomize.py usercustomize.py profile.ps1 microsoft.powershell_profile.ps1`),
	// Git's own, and what runs at a commit. A file HEAD makes a repository of the directory beside it.
	class(Exec, `head .git .gitconfig .gitmodules .husky .githooks .pre-commit-config.yml
		lefthook.yml .lefthook.yml .overcommit.yml .hg
		.hgrc .jj`),
	// What an agent or an editor obeys.
	class(Exec, `claude_desktop_config.json .claude .claude-plugin .cursor .codex
		.copilot .gemini .zed .windsurf .continue .roo .cline .roomodes .amazonq .kiro .junie
		.opencode .qwen .crush .goose .augment .augment-guidelines .trae .agent .agents .codeium .factory .kilocode
		.kilocodemodes .continuerc.json .aiassistant .openhands .qoder .tabnine .serena .idx .replit .fleet .theia
		.codesandbox .gitpod.yml .aider.conf.yml .devcontainer .devcontainer.json claude.md agent.md agents.md
		agents.override.md skill.md gemini.md qwen.md crush.md warp.md replit.md airules.md .goosehints
		copilot-instructions.md opencode.json crush.json`),
	// What runs at a push, at a start or by the clock.
	class(Exec, `.circleci .buildkite .woodpecker .gitlab-ci.yml .travis.yml .drone.yml .cirrus.yml .semaphore
		.woodpecker.yml .tekton .teamcity .builds .build.yml .azure-pipelines bamboo-specs action.yml
		appveyor.yml .appveyor.yml azure-pipelines.yml bitbucket-pipelines.yml cloudbuild.yml buildspec.yml jenkinsfile crontab anacrontab cron.d cron.hourly cron.daily
		cron.weekly cron.monthly launchagents launchdaemons ld.so.preload rc.local`),
	class(Marked, `package.json makefile gnumakefile justfile .justfile rakefile gemfile
		setup.py setup.cfg pyproject.toml conftest.py noxfile.py tox.ini build.gradle build.gradle.kts
		settings.gradle settings.gradle.kts pom.xml build.rs cmakelists.txt dockerfile
		containerfile docker-compose.yml compose.yml taskfile.yml vagrantfile flake.nix composer.json cargo.toml
		gradlew gradlew.bat mvnw mvnw.cmd gradle-wrapper.jar gradle-wrapper.properties .bazelrc .pnpmfile.cjs
		.pnp.cjs bunfig.toml rust-toolchain.toml .pylintrc .rubocop.yml .luacheckrc .eslintrc.js eslint.config.js`),
)

// forms are the names of Exec and Marked that may be written in several formats, as inFormat gives them.
var forms = formats()

func formats() Tails {
	out := Tails{}
	for n, c := range named {
		if form := inFormat(n); form != "" && c < Secret {
			out[form] = max(out[form], c)
		}
	}
	return out
}

// inFormat is a name with the ending of its kind of format: x.yml for x.toml and x.json, x.js for
// x.mjs. "" for a name in another format.
func inFormat(name string) string {
	dot := strings.LastIndexByte(name, '.')
	if dot < 1 {
		return ""
	}
	switch name[dot+1:] {
	case "yml", "yaml", "toml", "json", "jsonc", "json5", "jsonnet", "star":
		return name[:dot] + ".yml"
	case "js", "cjs", "mjs", "ts", "cts", "mts":
		return name[:dot] + ".js"
	}
	return ""
}

// begins are the first bytes of the secret ones.
var begins = firsts()

func firsts() (out [256]bool) {
	for n, c := range named {
		out[n[0]] = out[n[0]] || c == Secret
	}
	return out
}

// A tail is a directory by the end of its path, and the names that have a class in it alone.
type tail struct {
	dir   string // begins with a slash
	names Tails
}

// tails are by the last name of their directory.
var tails = byLast(
	tail{"/.aws", class(Secret, "credentials config sso cli")},
	tail{"/.kube", class(Secret, "config cache")},
	tail{"/.docker", class(Secret, "config.json")},
	tail{"/.cargo", merged(class(Secret, "credentials credentials.toml"),
		class(Exec, "config config.toml env bin"))},
	tail{"/.gem", class(Secret, "credentials")},
	tail{"/.m2", class(Secret, "settings.xml settings-security.xml")},
	tail{"/.gradle", merged(class(Secret, "gradle.properties"), class(Exec, "init.gradle init.d"))},
	tail{"/.streamlit", class(Secret, "secrets.toml")},
	tail{"/.microsoft", class(Secret, "usersecrets")},
	tail{"/solana", class(Secret, "id.json")},
	tail{"/run", class(Secret, "secrets")},
	tail{"/.oci", class(Secret, "config")},
	tail{"/.config/containers", class(Secret, "auth.json")}, // of podman
	tail{"/sops/age", class(Secret, "keys.txt")},
	tail{"/.cache/huggingface", class(Secret, "token stored_tokens")},
	tail{"/.huggingface", class(Secret, "token")},
	tail{"/library", class(Secret, "keychains")},
	tail{"/snap/chromium/common", class(Secret, "chromium")},
	tail{"/.fly", class(Secret, "config.yml")},
	tail{"/.composer", class(Secret, "auth.json")},
	tail{"/.codex", class(Secret, "auth.json")},
	tail{"/.nuget/nuget", class(Secret, "nuget.config")},
	tail{"/.config", merged(class(Secret, `gcloud hub op doctl ngrok github-copilot google-chrome
		google-chrome-beta chromium bravesoftware microsoft-edge vivaldi opera`),
		class(Exec, `fish nushell elvish xonsh zsh tmux nvim vim emacs helix zed amp goose autostart environment.d
			plasma-workspace i3 sway hypr openbox bspwm awesome xmonad qtile direnv mise`))},
	tail{"/.config/gh", class(Secret, "hosts.yml")},
	tail{"/.config/glab-cli", class(Secret, "config.yml")},
	tail{"/.config/git", merged(class(Secret, "credentials"), class(Exec, "config attributes"))},
	tail{"/.config/composer", class(Secret, "auth.json")},
	tail{"/.config/systemd", class(Exec, "user")},
	tail{"/github cli", class(Secret, "hosts.yml")},
	tail{"/.local/share/opencode", class(Secret, "auth.json")},
	tail{"/.local/share", merged(class(Secret, "keyrings kwalletd"), class(Exec, "applications dbus-1 systemd"))},
	tail{"/.local", class(Exec, "bin")},
	tail{"/.yarn", class(Exec, "releases plugins")},
	tail{"/hooks", class(Exec, "hooks.json")},
	tail{"/tools", class(Marked, "bazel")},
	tail{"/.var/app", class(Secret, "org.mozilla.firefox com.google.chrome org.chromium.chromium")},
	tail{"/application support", Tails{"firefox": Secret, "chromium": Secret, "bravesoftware": Secret,
		"microsoft edge": Secret}},
	tail{"/application support/google", class(Secret, "chrome")},
	tail{"/local/google", class(Secret, "chrome")}, // below AppData, as the next two
	tail{"/local/microsoft", class(Secret, "edge")},
	tail{"/roaming/mozilla", class(Secret, "firefox")},
	tail{"/appdata/roaming", class(Secret, "gcloud")},
	tail{"/start menu/programs", class(Exec, "startup")},

	tail{"/.vscode", class(Exec, "tasks.json launch.json settings.json c_cpp_properties.json")},
	tail{"/.vs", class(Exec, "tasks.vs.json launch.vs.json")},
	tail{"/.gitlab", class(Exec, "ci")},
	tail{"/.idea", class(Exec, "runconfigurations workspace.xml watchertasks.xml startup.xml externaldependencies.xml tools")},
	tail{"/.github", class(Exec, "workflows actions instructions prompts agents skills copilot chatmodes hooks")},
	tail{"/.gitea", class(Exec, "workflows")},
	tail{"/.forgejo", class(Exec, "workflows")},
	tail{"/systemd", class(Exec, "system user")},
	tail{"/cron", class(Exec, "crontabs tabs")},
	tail{"/var/spool", class(Exec, "cron")},
	tail{"/.config/code/user", class(Exec, "tasks.json settings.json")},
	tail{"/xdg", class(Exec, "autostart")},
	tail{"/udev", class(Exec, "rules.d")},
	tail{"/etc", merged(class(Secret, "shadow shadow- gshadow gshadow-"),
		class(Secret, "wireguard"),
		class(Exec, `init.d environment profile profile.d bash.bashrc bashrc zshrc zshenv zprofile zsh csh.cshrc
			gitconfig sudoers sudoers.d pam.d ld.so.conf ld.so.conf.d modprobe.d logrotate.d`))},
	tail{"/etc/ssh", class(Exec, "sshd_config sshd_config.d ssh_config ssh_config.d")},
	tail{"/etc/apt", class(Exec, "apt.conf apt.conf.d")},
	tail{"/etc/networkmanager", class(Exec, "dispatcher.d")},
	tail{"/etc/kubernetes", class(Secret, "admin.conf super-admin.conf kubelet.conf controller-manager.conf scheduler.conf pki")},
	tail{"/etc/ssl", class(Secret, "private")},
)

func class(c Class, names string) Tails {
	out := Tails{}
	for _, n := range strings.Fields(names) {
		out[n] = c
	}
	return out
}

func merged(all ...Tails) Tails {
	out := Tails{}
	for _, one := range all {
		for n, c := range one {
			out[n] = max(out[n], c)
		}
	}
	return out
}

func byLast(all ...tail) map[string][]tail {
	out := map[string][]tail{}
	for _, t := range all {
		last := t.dir[strings.LastIndexByte(t.dir, '/')+1:]
		out[last] = append(out[last], t)
	}
	return out
}

// Names are the names of the tables, for whoever has to know their short forms.
func ProtectedNames() (out []string) {
	for n, c := range named {
		if c > Marked {
			out = append(out, n)
		}
	}
	for _, of := range tails {
		for _, t := range of {
			for n := range t.names {
				out = append(out, n)
			}
		}
	}
	return append(out, ".env", ".bashrc", ".zshrc", ".profile", ".bash_profile", ".vimrc", ".mcp.json", ".bash_history")
}
