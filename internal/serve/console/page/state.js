// State that the views share, and addresses: the view, what it shows and its filters are in the hash.
export const S = { me: null, config: {}, approvals: [], title: '', newer: 0 };
// ui is filled by app.js.
export const ui = {};

export const VIEWS = { waiting: 'Waiting', timeline: 'Timeline', sessions: 'Sessions', refused: 'Refused', audit: 'Audit', trash: 'Trash', tokens: 'Tokens', health: 'Health' };

export function route() {
  const [path, query] = location.hash.replace(/^#\/?/, '').split('?'), [view, id] = path.split('/');
  let name = '';
  try { name = decodeURIComponent(id ?? ''); } catch { /* no id of ours */ }
  return { view: Object.hasOwn(VIEWS, view) ? view : 'waiting', id: name, q: new URLSearchParams(query ?? '') };
}

export function href(view, id, query) {
  const q = new URLSearchParams(Object.entries(query ?? {}).filter(([, v]) => v)).toString();
  return `#/${view}${id ? '/' + encodeURIComponent(id) : ''}${q ? '?' + q : ''}`;
}

// goto shows an address. With keep it takes the place of the one before; anew makes the view anew.
export function goto(url, keep, anew) {
  if (!keep) { location.hash = url; return; }
  history.replaceState(null, '', url);
  ui.render(anew);
}
export const frame = () => ui.frame();
export const failed = err => ui.failed(err);
