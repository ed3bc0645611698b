import assert from 'node:assert/strict'
import { test } from 'node:test'
import { toCSV } from '../src/lib/csv.ts'

test('values are quoted where needed', () => {
  assert.equal(toCSV(['a', 'b'], [{ a: 'x,y', b: 'say "no"' }, { a: 1, b: null }, { a: 'two\r\nlines', b: ['z'] }]), 'a,b\r\n"x,y","say ""no"""\r\n1,\r\n"two\r\nlines","[""z""]"\r\n')
})

test('no text and no heading is a formula for a spreadsheet', () => {
  for (const start of ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠']) {
    const [heading, value] = toCSV([`${start}cmd`], [{ [`${start}cmd`]: `${start}cmd|'/c calc'!A1` }]).split(/\r\n(?=.)/)
    for (const field of [heading!, value!]) assert.match(field, /^"?'/, JSON.stringify(field))
  }
  assert.equal(toCSV(['n'], [{ n: -5 }]), 'n\r\n-5\r\n')
})
