// JSON text that is changed without losing what JSON.parse loses: digits of large numbers, repeated names.

const tokens = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s"{}[\],:]+/gs

/** Valid JSON text with other white space: indented by so many spaces, or compact with 0. */
export function reformat(text: string, indent: number): string {
  const out: string[] = []
  const line = (depth: number): string => (indent === 0 ? '' : `\n${' '.repeat(depth * indent)}`)
  let depth = 0
  let before = ''
  for (const [token] of text.matchAll(tokens)) {
    if (token === '}' || token === ']') {
      depth--
      if (before !== '{' && before !== '[') out.push(line(depth))
    } else if (before === '{' || before === '[' || before === ',') out.push(line(depth))
    out.push(token === ':' && indent > 0 ? ': ' : token)
    if (token === '{' || token === '[') depth++
    before = token
  }
  return out.join('')
}

/** A number as it is written, where JavaScript has no such number or writes it in another way. */
export class Digits {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
  toString(): string {
    return this.text
  }
  toJSON(): string {
    return this.text
  }
}

const mark = '\uE000#'

/** Parses valid JSON and keeps numbers as they are written. */
export function parseExact(text: string): unknown {
  let marked = false
  const safe = text.replace(tokens, (token) => {
    if (!/^[-\d]/.test(token) || String(Number(token)) === token) return token
    marked = true
    return JSON.stringify(mark + token)
  })
  if (!marked) return JSON.parse(text)
  return JSON.parse(safe, (_name, value: unknown) => (typeof value === 'string' && value.startsWith(mark) ? new Digits(value.slice(mark.length)) : value))
}

/** The members of JSON text that is an object: names and the text of values. */
function members(text: string): [name: string, value: string][] {
  const out: [string, string][] = []
  let depth = 0
  for (const [token] of text.matchAll(tokens)) {
    if (token === '}' || token === ']') depth--
    if (depth === 1 && token === ',') out.push(['', ''])
    else if (depth === 1 && token === ':' && out.at(-1)![1] !== '') out.push([JSON.parse(out.pop()![1]) as string, ''])
    else if (depth > 0) {
      if (out.length === 0) out.push(['', ''])
      out.at(-1)![1] += token
    }
    if (token === '{' || token === '[') depth++
  }
  return out
}

/** JSON text of an object with one member changed to a value that is JSON text, or removed. */
export function withMember(text: string, name: string, value: string | undefined): string {
  const list = members(text)
  const at = list.findIndex(([n]) => n === name)
  const next = list.filter(([n]) => n !== name)
  if (value !== undefined) next.splice(at < 0 ? next.length : at, 0, [name, value])
  return reformat(`{${next.map(([n, v]) => `${JSON.stringify(n)}:${v}`).join(',')}}`, 2)
}

/** Whether a text is JSON. */
export function validJSON(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
