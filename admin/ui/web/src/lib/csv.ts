// Comma-separated values, RFC 4180.

export function toCSV(columns: readonly string[], rows: readonly Record<string, unknown>[]): string {
  const lines = [columns.map(field).join(',')]
  for (const r of rows) lines.push(columns.map((c) => field(r[c])).join(','))
  return `${lines.join('\r\n')}\r\n`
}

function field(value: unknown): string {
  if (value === undefined || value === null) return ''
  let text = typeof value === 'string' ? value : JSON.stringify(value)
  // A spreadsheet would take these for formulas.
  if (typeof value === 'string' && /^[=+\-@\t\r\n＝＋－＠]/.test(text)) text = `'${text}`
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
