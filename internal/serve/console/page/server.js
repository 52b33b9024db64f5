// The server: its methods, the sign-in, and its events.
import { clock } from './dom.js';

// A Refusal is an error that the server told: code is that of JSON-RPC, data its facts.
export class Refusal extends Error {
  constructor(error) { super(error.message); this.code = error.code; this.data = error.data ?? {}; }
}
export class SignedOut extends Error {}

const post = (path, body) => fetch(path, { method: 'POST', credentials: 'same-origin', cache: 'no-store', redirect: 'error',
  headers: { 'Content-Type': 'application/json', 'X-Moltis': '1' }, body: JSON.stringify(body) });

function tellTime(r) {
  const date = Date.parse(r.headers.get('Date') ?? '');
  if (date && Math.abs(date - clock.now()) > 2000) clock.ahead = date - Date.now(); // Date has whole seconds
}
let last = 0;

// rpc calls a method of the operators.
export async function rpc(method, params = {}) {
  let r;
  try { r = await post('rpc', { jsonrpc: '2.0', id: ++last, method, params }); } catch { throw new Error('The server can’t be reached.'); }
  if (r.status === 401) throw new SignedOut((await r.json()).error);
  tellTime(r);
  const answer = await r.json();
  if (answer.error) throw typeof answer.error === 'string' ? new Error(answer.error) : new Refusal(answer.error);
  return answer.result;
}

// who is the operator who is signed in; null for nobody. It throws while nobody can say.
export async function who() {
  const r = await fetch('who', { credentials: 'same-origin', cache: 'no-store' });
  tellTime(r);
  if (r.status === 503) throw new Error((await r.json()).error);
  return r.ok ? r.json() : null;
}

// signIn exchanges {code} or {token} for the cookie.
export async function signIn(by) {
  const r = await post('sign-in', by), answer = await r.json();
  if (!r.ok) throw new Error(answer.error);
  return answer;
}
export const signOut = () => post('sign-out', {});

const SILENCE = 25000; // the server says something each 10 s

// listen tells on(name, data) what happens, and onlive(bool) whether it is heard. A stream that ended, or is silent, is opened anew.
export function listen(on, onlive, onout) {
  let source, heard = 0, wait = 1000, again, stopped = false;
  const names = ['begin', 'beat', 'approval.asked', 'approval.over', 'checkpoint', 'config'];
  function open() {
    clearTimeout(again);
    source?.close();
    source = new EventSource('events');
    heard = Date.now();
    for (const name of names) {
      source.addEventListener(name, ev => {
        heard = Date.now();
        if (name === 'begin') { wait = 1000; onlive(true); }
        on(name, JSON.parse(ev.data));
      });
    }
    source.onerror = async () => {
      onlive(false);
      source.close();
      const me = await who().catch(() => undefined);
      if (me === null) return onout();
      if (!stopped) again = setTimeout(open, wait);
      wait = Math.min(2 * wait, 30000);
    };
  }
  const look = setInterval(() => { if (Date.now() - heard > SILENCE) { onlive(false); open(); } }, 5000);
  open();
  return () => { stopped = true; clearInterval(look); clearTimeout(again); source.close(); };
}

// history24 gives the sizes of a day: [{time, store, audit, trash, waiting}], oldest first.
export async function history24() {
  const r = await fetch('history', { credentials: 'same-origin', cache: 'no-store' });
  return r.ok ? (await r.json()).points : [];
}
