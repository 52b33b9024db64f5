package protect

import "strings"

// named are the names that have their class in any directory.
var named = merged(
	class(Secret, `.ssh .gnupg .azure .password-store .netrc _netrc .authinfo .pgpass
		.my.cnf .mylogin.cnf .npmrc .pypirc .git-credentials .htpasswd .vault-token .databrickscfg
		.s3cfg .boto .dockercfg .terraformrc terraform.rc credentials.tfrc.json rclone.conf
		.credentials.json oauth_creds.json application_default_credentials.json service-account.json
		service_account.json service-account-key.json serviceaccountkey.json .mozilla .thunderbird
		.librewolf key3.db key4.db cookies.sqlite cookies.binarycookies`),
	// What a shell or a program of a person reads by itself.
	class(Exec, `.bashrc .bashrc.d .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc
		.zshenv .zprofile .zlogin .zlogout .kshrc .mkshrc .cshrc .tcshrc .login .inputrc .envrc .direnvrc
		.mise.toml mise.toml .xinitrc .xprofile .xsession .xsessionrc .pam_environment .exrc .vim .vimrc
		.gvimrc .nvimrc .dir-locals.el .emacs .emacs.d .tmux.conf .screenrc .gdbinit .lldbinit .pdbrc
		.irbrc .pryrc .rprofile .yarnrc .yarnrc.yml sitecustomize.py usercustomize.py profile.ps1
		microsoft.powershell_profile.ps1`),
	// Git's own, and what runs at a commit. A file HEAD makes a repository of the directory beside it.
	class(Exec, `head .git .gitconfig .gitmodules .husky .githooks .pre-commit-config.yaml
		.pre-commit-config.yml lefthook.yml lefthook.yaml .lefthook.yml .overcommit.yml .hg
		.hgrc .jj`),
	// What an agent or an editor obeys.
	class(Exec, `.mcp.json mcp.json claude_desktop_config.json .claude .claude.json .cursor .codex
		.gemini .zed .windsurf .continue .roo .cline .clinerules .roomodes .amazonq .kiro .junie
		.opencode .qwen .crush .goose .augment .trae .agents .codeium .aider.conf.yml .devcontainer
		.devcontainer.json claude.md claude.local.md agents.md agents.override.md gemini.md qwen.md
		crush.md warp.md .cursorrules .windsurfrules .roorules .goosehints copilot-instructions.md
		opencode.json opencode.jsonc crush.json`),
	// What runs at a push, at a start or by the clock.
	class(Exec, `.circleci .buildkite .woodpecker .gitlab-ci.yml .gitlab-ci.yaml
		.travis.yml .drone.yml .cirrus.yml .semaphore .woodpecker.yml
		appveyor.yml .appveyor.yml azure-pipelines.yml azure-pipelines.yaml bitbucket-pipelines.yml
		cloudbuild.yaml buildspec.yml jenkinsfile crontab anacrontab cron.d cron.hourly cron.daily
		cron.weekly cron.monthly launchagents launchdaemons ld.so.preload rc.local`),
	class(Marked, `package.json makefile gnumakefile justfile .justfile rakefile gemfile
		setup.py setup.cfg pyproject.toml conftest.py noxfile.py tox.ini build.gradle build.gradle.kts
		settings.gradle settings.gradle.kts pom.xml build.rs cmakelists.txt dockerfile
		docker-compose.yml docker-compose.yaml compose.yml compose.yaml taskfile.yml vagrantfile
		flake.nix`),
)

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
		class(Exec, "config config.toml"))},
	tail{"/.gem", class(Secret, "credentials")},
	tail{"/.m2", class(Secret, "settings.xml settings-security.xml")},
	tail{"/.gradle", merged(class(Secret, "gradle.properties"), class(Exec, "init.gradle init.d"))},
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
	tail{"/.config", merged(class(Secret, `gcloud hub op doctl github-copilot google-chrome
		google-chrome-beta chromium bravesoftware microsoft-edge vivaldi opera`),
		class(Exec, "fish nushell nvim autostart environment.d direnv mise"))},
	tail{"/.config/gh", class(Secret, "hosts.yml")},
	tail{"/.config/glab-cli", class(Secret, "config.yml")},
	tail{"/.config/git", merged(class(Secret, "credentials"), class(Exec, "config attributes"))},
	tail{"/.config/composer", class(Secret, "auth.json")},
	tail{"/.config/systemd", class(Exec, "user")},
	tail{"/github cli", class(Secret, "hosts.yml")},
	tail{"/.local/share/opencode", class(Secret, "auth.json")},
	tail{"/.local/share", class(Secret, "keyrings kwalletd")},
	tail{"/.var/app", class(Secret, "org.mozilla.firefox com.google.chrome org.chromium.chromium")},
	tail{"/application support", Tails{"firefox": Secret, "chromium": Secret, "bravesoftware": Secret,
		"microsoft edge": Secret}},
	tail{"/application support/google", class(Secret, "chrome")},
	tail{"/local/google", class(Secret, "chrome")}, // below AppData, as the next two
	tail{"/local/microsoft", class(Secret, "edge")},
	tail{"/roaming/mozilla", class(Secret, "firefox")},
	tail{"/appdata/roaming", class(Secret, "gcloud")},
	tail{"/start menu/programs", class(Exec, "startup")},

	tail{"/.vscode", class(Exec, "tasks.json launch.json settings.json mcp.json")},
	tail{"/.idea", class(Exec, "runconfigurations workspace.xml watchertasks.xml tools")},
	tail{"/.github", class(Exec, "workflows actions instructions prompts agents chatmodes hooks")},
	tail{"/.gitea", class(Exec, "workflows")},
	tail{"/.forgejo", class(Exec, "workflows")},
	tail{"/systemd", class(Exec, "system user")},
	tail{"/cron", class(Exec, "crontabs tabs")},
	tail{"/var/spool", class(Exec, "cron")},
	tail{"/.config/code/user", class(Exec, "tasks.json settings.json")},
	tail{"/xdg", class(Exec, "autostart")},
	tail{"/udev", class(Exec, "rules.d")},
	tail{"/etc", merged(class(Secret, "shadow shadow- gshadow gshadow-"),
		class(Exec, "init.d environment profile profile.d bash.bashrc sudoers sudoers.d"))},
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
func Names() (out []string) {
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
	return append(out, ".env")
}
