// What somebody does who sees the UI for the first time: from an empty server to a failure that is
// fixed with a new deployment. Only the service itself is started elsewhere. SHOTS=folder writes screenshots of the steps.

import assert from 'node:assert/strict'
import { axe, noProblems, open, selected, test } from './lib.mjs'
import { World } from './world.mjs'

export async function testWalk() {
  const name = 'a first visit: register, call, find a failure, fix it with a new deployment, resume'
  if (!selected(name)) return
  // An invocation that has stored nothing is retried on the latest deployment, so it would continue by itself.
  const w = await World.start({ env: { PLATFORM_DEFAULT_RETRY_POLICY__INITIAL_INTERVAL: '10m', PLATFORM_DEFAULT_RETRY_POLICY__MAX_INTERVAL: '10m' } })
  try {
    await test(name, async () => {
      const t = await open(w, '/', { allow: [/status of 404/] })
      const { page } = t
      const dialog = page.getByRole('dialog')
      let shots = 0
      const shot = async () => process.env.SHOTS && page.screenshot({ path: `${process.env.SHOTS}/walk-${++shots}.png` })
      const register = async (address, services) => {
        await dialog.getByPlaceholder('http://localhost:9080').fill(address)
        await dialog.getByRole('button', { name: 'Check' }).click()
        await dialog.locator('.plan').getByText(services).first().waitFor()
        await shot()
        await dialog.getByRole('button', { name: 'Register' }).click()
        await dialog.waitFor({ state: 'detached' })
      }
      await page.getByText('Run your first durable handler').waitFor()
      await shot()
      await page.getByRole('button', { name: 'Register localhost:9080' }).click()
      await register(w.service, 'Orders')

      await page.getByRole('heading', { name: '4 services registered' }).waitFor()
      await shot()
      await page.getByRole('link', { name: 'Orders/flaky' }).click()
      await page.locator('.cm-content').click()
      await page.keyboard.press('ControlOrMeta+a')
      await page.keyboard.insertText('"eu-1"')
      await page.getByRole('button', { name: 'Send', exact: true }).first().click()
      await page.getByRole('button', { name: 'Send', exact: true }).last().click()
      await page.locator('.answer').getByText('Accepted', { exact: true }).waitFor()
      await shot()

      await page.getByRole('link', { name: /^Overview/ }).click()
      await page.getByRole('heading', { name: /^Latest failures/ }).waitFor()
      await shot()
      await page.getByRole('link', { name: /^Failures/ }).first().click()
      await page.locator('tbody').getByRole('link').first().click()
      await page.getByRole('button', { name: 'Register a fix' }).waitFor()
      await shot()
      assert.deepEqual(await axe(page), [])
      await page.getByRole('button', { name: 'Register a fix' }).click()
      await register(await w.startRepairedService(), 'Orders')
      await page.getByRole('button', { name: 'Resume all' }).click()
      await dialog.getByLabel('Deployment').selectOption('Latest')
      await shot()
      assert.deepEqual(await axe(page), [])
      await dialog.getByRole('button', { name: /^Resume/ }).click()
      await page.getByText('Nothing fails in this way now').waitFor()
      await shot()
      await page.getByRole('link', { name: /^Invocations/ }).first().click()
      await page.locator('tbody').getByRole('link', { name: /flaky/ }).first().click()
      await page.locator('.inv-head').getByText('Succeeded').waitFor()
      await page.getByText('connected to eu-1').first().waitFor()
      await shot()
      noProblems(t)
      await t.close()
    })
  } finally {
    await w.stop()
  }
}
