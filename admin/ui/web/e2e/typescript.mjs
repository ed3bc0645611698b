// The pages with services of the TypeScript SDK, whose errors, stack traces and input schemas differ from those of Go:
// registered, called with hostile input, failed, repaired and resumed by means of the UI alone.

import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { axe, noProblems, open, selected, test } from './lib.mjs'
import { World, freePorts, hostile } from './world.mjs'

/** Starts what the test services report side effects to. */
async function startRecorder(port) {
  const counts = new Map()
  const server = createServer((req, res) => {
    const n = (counts.get(req.url) ?? 0) + 1
    counts.set(req.url, n)
    req.resume().once('end', () => res.end(String(n)))
  })
  await new Promise((resolve) => server.listen(port, '127.0.0.1', resolve))
  return server
}

export async function testTypeScript() {
  const name = 'typescript: services are registered, called, found failing, repaired and resumed'
  if (!selected(name)) return
  const w = await World.start()
  const [port, recorderPort] = await freePorts(2)
  w.run(process.execPath, [process.env.UI_TS_SERVICE], { ...process.env, PORT: String(port), RECORDER: `http://127.0.0.1:${recorderPort}` })
  let recorder
  try {
    await test(name, async () => {
      const t = await open(w, '/ui/', { allow: [/status of 404/] })
      const { page } = t
      const dialog = page.getByRole('dialog')
      await page.getByRole('button', { name: 'Register deployment' }).first().click()
      await dialog.getByPlaceholder('http://localhost:9080').fill(`127.0.0.1:${port}`)
      await dialog.getByRole('button', { name: 'Check' }).click()
      await dialog.locator('.plan').getByText('TsEcho').waitFor()
      assert.deepEqual(await axe(page), [])
      await dialog.getByRole('button', { name: 'Register' }).click()
      await dialog.waitFor({ state: 'detached' })

      const invoke = async (target, input, action) => {
        const [service, handler] = target.split('/')
        await page.goto(`${w.admin}/ui/services/${service}?invoke=${handler}`)
        await page.locator('.cm-content').click()
        await page.keyboard.press('ControlOrMeta+a')
        await page.keyboard.insertText(JSON.stringify(input))
        if (action === 'Send') await page.getByRole('button', { name: 'Send', exact: true }).first().click()
        await page.getByRole('button', { name: action, exact: true }).last().click()
      }
      await invoke('TsEcho/json', hostile, 'Call')
      const answer = page.locator('.answer')
      await answer.getByText('Succeeded').waitFor()
      await answer.getByText('Text', { exact: true }).click()
      assert.deepEqual(JSON.parse(await answer.locator('.payload-body').innerText()), hostile)
      assert.equal(await page.locator('main img:not(.cm-widgetBuffer), main script').count(), 0) // the editor has some of its own

      // The recorder does not run, so each attempt fails with an error of Node.
      await invoke('TsPaused/work', { id: 'ts-1' }, 'Send')
      await answer.getByText('Accepted', { exact: true }).waitFor()
      await answer.getByRole('link').first().click()
      await page.locator('.inv-head').getByText('Paused', { exact: true }).waitFor()
      await page.getByText('fetch failed').first().waitFor()
      await page.getByText('Stack trace').first().click()
      await page.getByText(/recorder\.js:\d+/).first().waitFor()
      assert.deepEqual(await axe(page), [])

      recorder = await startRecorder(recorderPort)
      await page.getByRole('link', { name: /^Failures/ }).first().click()
      await page.locator('tbody').getByRole('link', { name: /TsPaused/ }).first().click()
      await page.getByRole('button', { name: 'Resume all' }).click()
      await dialog.getByRole('button', { name: /^Resume/ }).click()
      await page.getByText('Nothing fails in this way now').waitFor()
      await page.getByRole('link', { name: /^Invocations/ }).first().click()
      await page.locator('tbody').getByRole('link', { name: /TsPaused/ }).first().click()
      await page.locator('.inv-head').getByText('Succeeded').waitFor()

      // A durable step has its name in the journal.
      await invoke('TsSteps/once', { id: 'ts-2' }, 'Call')
      await answer.getByText('Succeeded').waitFor()
      await answer.getByRole('link').first().click()
      await page.locator('.j-line', { hasText: 'once' }).waitFor()
      noProblems(t)
      await t.close()
    })
  } finally {
    recorder?.close()
    await w.stop()
  }
}
