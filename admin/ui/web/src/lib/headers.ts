// HTTP headers that are entered as text.

export interface Headers {
  list: (readonly [name: string, value: string])[]
  /** Why the text is refused. */
  problem?: string
}

/** Parses lines of the form "name: value"; empty lines are ignored. */
export function parseHeaders(text: string): Headers {
  const list: (readonly [string, string])[] = []
  for (const [n, line] of text.split('\n').entries()) {
    if (line.trim() === '') continue
    const m = /^\s*([!#$%&'*+.^_`|~0-9A-Za-z-]+)\s*:\s*(.*?)\s*$/.exec(line)
    if (!m) return { list, problem: `Line ${n + 1} of the headers is not of the form name: value.` }
    if (/[^\t\x20-\x7e\x80-\xff]/.test(m[2]!)) return { list, problem: `Line ${n + 1} of the headers has characters that no header can have.` }
    list.push([m[1]!, m[2]!])
  }
  return { list }
}
