// The viewer of payloads: JSON tree, text or hex, with search.

import { useMemo, useState } from 'preact/hooks'
import { Digits, parseExact, reformat } from '../lib/json.ts'
import { decode, hexRows, type Payload } from '../lib/payload.ts'
import { formatBytes, formatCount } from '../lib/format.ts'
import { Button, Copy, Segmented } from './basic.tsx'
import { Icon } from './icons.tsx'

/** Above this size JSON is shown as text. */
const treeLimit = 1 << 20
/** Above these sizes only a part is shown at first, and then at most as much as a browser can lay out. */
const textLimit = 64 << 10
const wholeText = 4 << 20
const hexLimit = 4096
const wholeHex = 1 << 20

interface Props {
  payload: Payload | undefined
  title?: string
  /** Reads a payload that was left out, and shows it. */
  load?: (() => void) | undefined
  /** Saves the payload as a file. */
  save?: (() => void) | undefined
  busy?: boolean
}

export function PayloadView({ payload, title, load, save, busy = false }: Props) {
  const bytes = payload?.bytes
  const decoded = useMemo(() => (bytes ? decode(bytes, treeLimit) : undefined), [bytes])
  const exact = useMemo(() => (decoded?.kind === 'json' && bytes!.length <= treeLimit ? parseExact(decoded.text!) : undefined), [decoded])
  const kinds = decoded?.kind === 'json' && bytes!.length <= treeLimit ? ['tree', 'text', 'hex'] as const : decoded?.text !== undefined ? ['text', 'hex'] as const : ['hex'] as const
  const [chosen, setChosen] = useState<'tree' | 'text' | 'hex'>()
  const [find, setFind] = useState('')
  const [whole, setWhole] = useState(false)
  const simple = decoded?.kind === 'json' && (typeof decoded.json !== 'object' || decoded.json === null)
  const kind = chosen && (kinds as readonly string[]).includes(chosen) ? chosen : simple ? 'text' : kinds[0]
  if (!payload) return null
  if (!bytes || !decoded) {
    return (
      <div class="payload">
        <div class="payload-head">{title && <span class="payload-title">{title}</span>}<span class="muted">{formatBytes(payload.length)}</span></div>
        <p class="payload-note">
          {load ? <Button small icon="search" onClick={load} busy={busy}>Show {formatBytes(payload.length)}</Button> : 'The content is not available.'}
          {save && <> <Button small icon="download" onClick={save} busy={busy}>Download</Button></>}
        </p>
      </div>
    )
  }
  if (decoded.kind === 'empty') return <div class="payload"><div class="payload-head">{title && <span class="payload-title">{title}</span>}<span class="muted">empty</span></div></div>
  const pretty = decoded.kind === 'json' && !simple && bytes.length <= treeLimit ? reformat(decoded.text!, 2) : decoded.text ?? ''
  const limit = kind === 'hex' ? (whole ? wholeHex : hexLimit) : whole ? wholeText : textLimit
  const size = kind === 'hex' ? bytes.length : pretty.length
  const shown = pretty.slice(0, limit)
  return (
    <div class="payload">
      <div class="payload-head">
        {title && <span class="payload-title">{title}</span>}
        <span class="muted">{formatBytes(bytes.length)}</span>
        <span class="grow" />
        {!simple && (kind === 'tree' || kind === 'text') && bytes.length > 200 && (
          <input class="input small" type="search" placeholder="Find" aria-label="Find in the payload" value={find} onInput={(e) => setFind(e.currentTarget.value)} />
        )}
        {kinds.length > 1 && <Segmented label="View" value={kind} onChange={setChosen} options={kinds.map((k) => [k, k === 'tree' ? 'JSON' : k === 'text' ? 'Text' : 'Hex'] as const)} />}
        <span class="payload-tools">
          {save && <Button small kind="ghost" icon="download" label="Download payload" onClick={save} busy={busy} />}
          <Copy text={decoded.text ?? ''} label="Copy payload" />
        </span>
      </div>
      {kind === 'tree' && <div class="payload-body" tabIndex={0} role="group" aria-label={title ?? 'Payload'}><JSONTree value={exact} find={find.trim().toLowerCase()} /></div>}
      {kind === 'text' && (
        <pre class="payload-body" tabIndex={0} aria-label={title ?? 'Payload'}><code dir="auto">{find.trim() ? marked(shown, find.trim()) : shown}</code></pre>
      )}
      {kind === 'hex' && (
        <pre class="payload-body hex" tabIndex={0} aria-label={title ?? 'Payload'}>{hexRows(bytes, limit).map((r) => <div key={r.offset}><span class="faint">{r.offset}</span>  {r.hex.padEnd(47)}  {r.text}</div>)}</pre>
      )}
      {kind !== 'tree' && size > limit && (
        <p class="payload-note">
          <span class="muted">The first {formatBytes(limit)} of {formatBytes(size)}. </span>
          {!whole && <Button small onClick={() => setWhole(true)}>{size > (kind === 'hex' ? wholeHex : wholeText) ? 'Show more' : 'Show all of it'}</Button>}
        </p>
      )}
    </div>
  )
}

function marked(text: string, find: string) {
  const out = []
  const lower = text.toLowerCase()
  const want = find.toLowerCase()
  let at = 0
  for (let n = 0; n < 500; n++) {
    const i = lower.indexOf(want, at)
    if (i < 0) break
    out.push(text.slice(at, i), <mark key={n}>{text.slice(i, i + want.length)}</mark>)
    at = i + want.length
  }
  out.push(text.slice(at))
  return out
}

/** Children shown before the rest is unfolded. */
const childLimit = 100

export function JSONTree({ value, find = '' }: { value: unknown; find?: string }) {
  return <ul class="tree" role="tree"><Node value={value} depth={0} find={find} /></ul>
}

function contains(value: unknown, find: string): boolean {
  return JSON.stringify(value)?.toLowerCase().includes(find) ?? false
}

function Node({ name, value, depth, find }: { name?: string; value: unknown; depth: number; find: string }) {
  const isArray = Array.isArray(value)
  const branch = typeof value === 'object' && value !== null && !(value instanceof Digits)
  const hit = find !== '' && branch && contains(value, find)
  const [open, setOpen] = useState<boolean>()
  const [limit, setLimit] = useState(childLimit)
  const label = name === undefined ? null : <><span class="j-key"><bdi>{find && name.toLowerCase().includes(find) ? <mark>{name}</mark> : name}</bdi></span><span class="j-p">: </span></>
  if (!branch) {
    const text = value instanceof Digits ? value.text : JSON.stringify(value)
    const kind = typeof value === 'string' ? 'j-s' : typeof value !== 'boolean' && value !== null ? 'j-n' : 'j-l'
    return <li role="treeitem" class="tree-leaf">{label}<span class={kind} dir="auto">{find && text.toLowerCase().includes(find) ? <mark>{text}</mark> : text}</span></li>
  }
  const entries: [string, unknown][] = isArray ? (value as unknown[]).map((v, i) => [String(i), v]) : Object.entries(value as object)
  const expanded = open ?? (hit || (depth < 2 && entries.length <= 20))
  return (
    <li role="treeitem" aria-expanded={expanded}>
      <button type="button" class="tree-fold" onClick={() => setOpen(!expanded)} aria-label={expanded ? 'Fold' : 'Unfold'}><Icon name={expanded ? 'down' : 'right'} size={12} /></button>
      {label}
      <span class="j-p">{isArray ? '[' : '{'}</span>
      {!expanded && <button type="button" class="tree-more" onClick={() => setOpen(true)}>{formatCount(entries.length)} {isArray ? 'items' : 'fields'}</button>}
      {expanded && entries.length > 0 && (
        <ul role="group">
          {entries.slice(0, limit).map(([k, v]) => <Node key={k} name={k} value={v} depth={depth + 1} find={find} />)}
          {entries.length > limit && <li role="treeitem"><button type="button" class="tree-more" onClick={() => setLimit(limit + 1000)}>{formatCount(entries.length - limit)} more</button></li>}
        </ul>
      )}
      <span class="j-p">{isArray ? ']' : '}'}</span>
    </li>
  )
}
