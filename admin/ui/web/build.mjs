// Builds ../dist and checks its size. The output depends on the sources and package-lock.json only.

import { build } from 'esbuild'
import { gzipSync } from 'node:zlib'
import { copyFileSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import path from 'node:path'

const here = path.dirname(fileURLToPath(import.meta.url))
const out = process.env.UI_DIST ?? path.join(here, '..', 'dist')
const dev = process.argv.includes('--dev')

/** Limits of sizes after gzip, in KiB: the first load, and everything. */
const limits = { first: 75, all: 300 }

mkdirSync(out, { recursive: true })
for (const name of readdirSync(out)) rmSync(path.join(out, name), { recursive: true })

const options = {
  absWorkingDir: here,
  outdir: out,
  entryNames: '[name]',
  chunkNames: 'shared',
  bundle: true,
  format: 'esm',
  target: ['chrome120', 'firefox121', 'safari17'],
  minify: !dev,
  sourcemap: false,
  jsx: 'automatic',
  jsxImportSource: 'preact',
  legalComments: 'none',
  charset: 'utf8',
  metafile: true,
  define: { 'process.env.NODE_ENV': '"production"' },
  logLevel: 'warning',
}
// The application is app.js, more.js with the pages that are loaded later, and shared.js, which both import.
const results = [
  await build({ ...options, entryPoints: { app: 'src/main.tsx', more: 'src/pages/more.ts' }, splitting: true }),
  await build({ ...options, entryPoints: { chart: 'src/lazy/chart.ts', editor: 'src/lazy/editor.ts', theme: 'src/theme.ts', 'app-style': 'src/css/app.css' } }),
]
renameSync(path.join(out, 'app-style.css'), path.join(out, 'app.css'))
copyFileSync(path.join(here, 'src/index.html'), path.join(out, 'index.html'))
copyFileSync(path.join(here, 'src/icon.svg'), path.join(out, 'icon.svg'))
writeFileSync(path.join(out, 'licenses.txt'), licenses(results.map((r) => r.metafile)))

let first = 0
let all = 0
for (const name of readdirSync(out).sort()) {
  const data = readFileSync(path.join(out, name))
  const packed = gzipSync(data, { level: 9 }).length
  all += packed
  if (['index.html', 'theme.js', 'app.js', 'shared.js', 'app.css', 'icon.svg'].includes(name)) first += packed
  console.log(`${name.padEnd(14)} ${(data.length / 1024).toFixed(1).padStart(8)} KiB ${(packed / 1024).toFixed(1).padStart(8)} KiB gzip`)
}
console.log(`${'first load'.padEnd(14)} ${''.padStart(12)} ${(first / 1024).toFixed(1).padStart(8)} KiB gzip (limit ${limits.first})`)
console.log(`${'all'.padEnd(14)} ${''.padStart(12)} ${(all / 1024).toFixed(1).padStart(8)} KiB gzip (limit ${limits.all})`)
if (!dev && (first > limits.first * 1024 || all > limits.all * 1024)) {
  console.error('The UI is larger than its limit.')
  process.exit(1)
}

/** The licences of the packages whose code is in the output. */
function licenses(metas) {
  const packages = new Set()
  for (const output of metas.flatMap((m) => Object.values(m.outputs))) {
    for (const [file, { bytesInOutput }] of Object.entries(output.inputs)) {
      const m = /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(file)
      if (m && bytesInOutput > 0) packages.add(m[1])
    }
  }
  const parts = [...packages].sort().map((name) => {
    const dir = path.join(here, 'node_modules', name)
    const info = JSON.parse(readFileSync(path.join(dir, 'package.json'), 'utf8'))
    const file = readdirSync(dir).find((f) => /^licen[cs]e(\.|$)/i.test(f))
    const text = file ? readFileSync(path.join(dir, file), 'utf8').replaceAll('\r\n', '\n').trim() : `License: ${info.license}`
    return `${name} ${info.version} (${info.license})\n\n${text}\n`
  })
  return `The web UI contains these packages.\n\n${parts.join(`\n${'-'.repeat(80)}\n\n`)}`
}
