// Numbers and identifiers as text.

const whole = new Intl.NumberFormat('en-US')

/** A whole number with separators: 1,204. */
export function formatCount(n: number): string {
  return whole.format(n)
}

/** A number that fits into a narrow place: 1.2k, 34M. */
export function formatCompact(n: number): string {
  const abs = Math.abs(n)
  if (abs < 1000) return Number.isInteger(n) ? String(n) : n.toFixed(abs < 10 ? 1 : 0)
  for (const [unit, name] of [[1e9, 'G'], [1e6, 'M'], [1e3, 'k']] as const) {
    if (abs >= unit) {
      const scaled = n / unit
      return (Math.abs(scaled) < 10 ? scaled.toFixed(1).replace(/\.0$/, '') : Math.round(scaled).toString()) + name
    }
  }
  return String(n)
}

/** A size in binary units: 512 B, 1.4 KiB. */
export function formatBytes(n: number): string {
  if (n < 1024) return `${n} B`
  let i = 0
  for (n /= 1024; n >= 1024 && i < 3; i++) n /= 1024
  return `${n < 10 ? n.toFixed(1) : Math.round(n)} ${['KiB', 'MiB', 'GiB', 'TiB'][i]}`
}

/** "1 invocation", "1,204 invocations". */
export function plural(n: number, one: string, many = `${one}s`): string {
  return `${formatCount(n)} ${n === 1 ? one : many}`
}

/** The kind of thing an identifier names. */
export function kindOfID(text: string): 'invocation' | 'deployment' | 'vqueue' | 'awakeable' | undefined {
  if (/^inv_[0-9A-Za-z]{6,}$/.test(text)) return 'invocation'
  if (/^dp_[0-9A-Za-z]{6,}$/.test(text)) return 'deployment'
  if (/^vq_[0-9A-Za-z]{6,}$/.test(text)) return 'vqueue'
  if (/^sign_1[0-9A-Za-z_-]{38}={0,2}$/.test(text)) return 'awakeable'
  return undefined
}

/** The text of a word list: a, b and c. */
export function listing(words: string[]): string {
  if (words.length < 2) return words.join('')
  return `${words.slice(0, -1).join(', ')} and ${words[words.length - 1]}`
}

/** A shell word, quoted if needed. */
export function shellQuote(text: string): string {
  return /^[A-Za-z0-9_./:=@%+,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}
