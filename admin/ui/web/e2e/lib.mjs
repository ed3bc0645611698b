// What the browser tests share: pages that report problems, and the count of results.

import { AsyncLocalStorage } from 'node:async_hooks'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import assert from 'node:assert/strict'
import { browser } from './world.mjs'

const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
export const long = Boolean(process.env.UI_LONG)
const only = process.env.ONLY?.split(',')
const patience = Number(process.env.UI_PATIENCE ?? 60_000)

export const results = { passed: 0, failed: 0 }
const opened = new AsyncLocalStorage() // the contexts of the test that runs: tests of several servers run side by side
const b = await browser()

export const closeBrowser = () => b.close()

/** Whether a test of this name is to run: all, or those that ONLY names. */
export const selected = (name) => !only || only.some((o) => name.includes(o))

/** Runs a test; what it leaves open is closed. */
export async function test(name, run) {
  if (!selected(name)) return
  const contexts = new Set()
  const start = performance.now()
  const time = () => `${((performance.now() - start) / 1000).toFixed(1)}s`
  try {
    await opened.run(contexts, run)
    results.passed++
    console.log(`ok    ${name}  ${time()}`)
  } catch (err) {
    results.failed++
    console.log(`FAIL  ${name}  ${time()}\n      ${String(err.stack ?? err).split('\n').slice(0, 12).join('\n      ')}`)
  }
  for (const c of contexts) await c.close().catch(() => undefined)
}

/** Opens a page that reports errors of the console, of scripts, and requests to origins other than these. */
export async function open(world, path, { theme = 'light', width = 1440, allow = [], others = [] } = {}) {
  const context = await b.newContext({ viewport: { width, height: 900 }, colorScheme: theme, reducedMotion: 'reduce' })
  opened.getStore().add(context)
  context.setDefaultTimeout(patience)
  const page = await context.newPage()
  const problems = []
  page.on('console', (m) => (m.type() === 'error' || /Content.Security/i.test(m.text())) && !allow.some((a) => a.test(m.text())) && problems.push(`console: ${m.text()} ${m.location().url}`))
  page.on('pageerror', (e) => problems.push(`script: ${e.stack}`))
  page.on('dialog', (d) => {
    problems.push(`a dialog of the browser: ${d.message()}`)
    void d.dismiss()
  })
  page.on('request', (r) => {
    const { origin, protocol } = new URL(r.url())
    const from = new URL(page.url()).pathname
    if (r.method() === 'POST' && r.url() === `${world.admin}/query` && from !== '/ui/sql') problems.push(`an SQL query from ${from}`)
    if (protocol !== 'data:' && protocol !== 'blob:' && origin !== world.admin && origin !== world.ingress && !others.includes(origin)) problems.push(`request to ${r.url()}`)
  })
  await page.goto(world.admin + path)
  return { page, problems, close: () => context.close(), settled: () => settled(page) }
}

/** Nothing is loading any longer. */
const settled = async (page) => {
  await page.locator('h1').first().waitFor()
  await page.waitForFunction(() => document.querySelectorAll('.skeleton').length === 0 && document.querySelector('main')?.textContent.trim() !== '')
}

export const noProblems = (t) => assert.deepEqual(t.problems, [])

/** The bar of a limit or of progress is drawn over its whole length. */
export async function barIsFull(within) {
  const [outer, inner] = await Promise.all(['.usage-bar', '.usage-bar i'].map((o) => within.locator(o).boundingBox()))
  assert.ok(inner.height >= 6 && inner.width > 50 && inner.width > outer.width - 3, `the bar is ${inner.width} × ${inner.height} of ${outer.width} × ${outer.height}`)
}

/** What axe finds on a page. Only of violations does it describe the elements, which takes longer than to check them. */
export async function axe(page) {
  if (await page.evaluate(() => !window.axe)) await page.evaluate(axeSource)
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'], runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] }))
  return violations.map((v) => `${v.id} (${v.impact}): ${v.nodes.slice(0, 3).map((n) => `${n.target.join(' ')} ${n.any?.[0]?.message ?? n.all?.[0]?.message ?? ''}`).join(' | ')}`)
}
