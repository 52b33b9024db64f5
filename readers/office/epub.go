package office

import (
	"cmp"
	"net/url"
	"path"
	"strings"

	"moltisfs/readers/unreadable"
)

// epub writes the chapters in reading order.
func (d *Document) epub() error {
	root := ""
	err := d.walk("META-INF/container.xml", xmlHandler{start: func(e *element) (bool, error) {
		if e.name == "rootfile" && root == "" {
			root = e.get("full-path")
		}
		return false, nil
	}})
	if err != nil {
		return err
	}
	items := map[string]string{}
	var spine []string
	title, inTitle := "", false
	err = d.walk(root, xmlHandler{
		start: func(e *element) (bool, error) {
			switch e.name {
			case "item":
				if strings.Contains(e.get("media-type"), "html") {
					href, err := url.PathUnescape(e.get("href"))
					if err == nil {
						items[e.get("id")] = path.Join(path.Dir(root), href)
					}
				}
			case "itemref":
				spine = append(spine, e.get("idref"))
			case "title":
				inTitle = title == ""
			}
			return false, nil
		},
		text: func(s []byte) error {
			if inTitle {
				title += string(s)
			}
			return nil
		},
		end: func(string) error {
			inTitle = false
			return nil
		},
	})
	if err != nil {
		return err
	}
	if title = strings.TrimSpace(title); title != "" {
		if err := d.add("# ", unreadable.Clip(title, 500), "\n\n"); err != nil {
			return err
		}
	}
	for _, id := range spine {
		name := items[id]
		if d.parts[name] == nil {
			continue
		}
		r, err := d.open(name)
		if err != nil {
			return err
		}
		d.block()
		err = d.html(r, false)
		r.Close()
		if err = cmp.Or(err, d.add("")); err != nil {
			return err
		}
	}
	return nil
}
