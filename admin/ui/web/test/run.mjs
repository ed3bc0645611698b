// Bundles the unit tests, which are TypeScript, and runs them with node's test runner.

import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const here = path.dirname(fileURLToPath(import.meta.url))
const out = mkdtempSync(path.join(tmpdir(), 'ui-unit-'))
try {
  const tests = readdirSync(here).filter((f) => f.endsWith('.test.ts'))
  await build({ entryPoints: tests.map((f) => path.join(here, f)), outdir: out, outExtension: { '.js': '.mjs' }, bundle: true, format: 'esm', platform: 'node', logLevel: 'warning' })
  const files = readdirSync(out).map((f) => path.join(out, f))
  process.exitCode = spawnSync(process.execPath, ['--test', ...files], { stdio: 'inherit' }).status ?? 1
} finally {
  rmSync(out, { recursive: true, force: true })
}
