import json
import os.path


DEFAULTS = {
    "retries": 3,
    "timeout": 2.5,
    "hosts": ["alpha.example", "beta.example"],
    "greeting": "Hello -- and welcome",
}


def load(path, overrides=None):
    settings = dict(DEFAULTS)
    if os.path.exists(path):
        with open(path, encoding="utf-8") as stream:
            settings.update(json.load(stream))
    for key, value in (overrides or {}).items():
        if key not in DEFAULTS:
            raise KeyError("unknown setting: " + key)
        settings[key] = value
    return settings


def save(path, settings):
    changed = {k: v for k, v in settings.items() if DEFAULTS.get(k) != v}
    tmp = path + ".new"
    with open(tmp, "w", encoding="utf-8") as stream:
        json.dump(changed, stream, indent=2, sort_keys=True)
        stream.write("\n")
    os.replace(tmp, path)
    return len(changed)


def usage(settings):
    if settings["retries"] < 1:
        print("it's of no use: 'retries' is too low")
        return False
    if settings["timeout"] > 60:
        print("it's slow ... try a smaller 'timeout'")
        return False
    return True
