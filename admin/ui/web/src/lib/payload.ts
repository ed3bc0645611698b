// Payloads: bytes that are usually JSON or text.

/** A payload of a journal; bytes is undefined when it was left out because of its size. */
export interface Payload {
  bytes?: Uint8Array
  length: number
}

export type PayloadKind = 'empty' | 'json' | 'text' | 'binary'

export interface Decoded {
  kind: PayloadKind
  text?: string
  json?: unknown
}

const strict = new TextDecoder('utf-8', { fatal: true })

/** Decodes a payload. One above `parseLimit` bytes is not parsed as JSON, which would block the page. */
export function decode(bytes: Uint8Array, parseLimit = Infinity): Decoded {
  if (bytes.length === 0) return { kind: 'empty', text: '' }
  let text: string
  try {
    text = strict.decode(bytes)
  } catch {
    return { kind: 'binary' }
  }
  const json = bytes.length <= parseLimit ? parseJSON(text) : undefined
  if (json !== undefined) return { kind: 'json', text, json: json.value }
  // eslint-disable-next-line no-control-regex
  return /[\0-\x08\x0e-\x1f]/.test(text) ? { kind: 'binary', text } : { kind: 'text', text }
}

function parseJSON(text: string): { value: unknown } | undefined {
  const first = text.trimStart()[0]
  if (first === undefined || !'{["-0123456789tfn'.includes(first)) return undefined
  try {
    return { value: JSON.parse(text) }
  } catch {
    return undefined
  }
}

/** A payload abbreviated to one line. */
export function preview(p: Payload | undefined, limit = 80): string {
  if (!p) return ''
  if (!p.bytes) return p.length > 0 ? '…' : ''
  const d = decode(p.bytes.length > 4 * limit + 16 ? p.bytes.subarray(0, 4 * limit + 16) : p.bytes)
  if (d.kind === 'empty') return ''
  const text = d.text ?? lenient(p.bytes.subarray(0, 4 * limit))
  if (d.kind === 'binary' && text.includes('\uFFFD') && p.bytes.length <= 4 * limit) return `<${p.length} bytes>`
  if (d.kind === 'binary' && d.text === undefined && !mostlyText(text)) return `<${p.length} bytes>`
  return ellipsis(text.replace(/\s+/g, ' ').trim(), limit)
}

function mostlyText(text: string): boolean {
  const bad = [...text].filter((c) => c === '\uFFFD').length
  return bad <= 1
}

function lenient(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes)
}

export function ellipsis(text: string, limit: number): string {
  const points = [...text]
  return points.length <= limit ? text : `${points.slice(0, limit - 1).join('')}…`
}

/** Rows of a hex dump: offset, hex, printable characters. */
export function hexRows(bytes: Uint8Array, limit: number): { offset: string; hex: string; text: string }[] {
  const rows = []
  for (let i = 0; i < Math.min(bytes.length, limit); i += 16) {
    const part = [...bytes.subarray(i, Math.min(i + 16, limit, bytes.length))]
    rows.push({
      offset: i.toString(16).padStart(8, '0'),
      hex: part.map((b) => b.toString(16).padStart(2, '0')).join(' '),
      text: part.map((b) => (b >= 32 && b < 127 ? String.fromCharCode(b) : '·')).join(''),
    })
  }
  return rows
}

export function fromBase64(text: string): Uint8Array {
  const raw = atob(text)
  const bytes = new Uint8Array(raw.length)
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i)
  return bytes
}

export function toBase64(bytes: Uint8Array): string {
  let raw = ''
  for (let i = 0; i < bytes.length; i += 0x8000) raw += String.fromCharCode(...bytes.subarray(i, i + 0x8000))
  return btoa(raw)
}
