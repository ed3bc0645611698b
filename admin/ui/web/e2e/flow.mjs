// Tests of a server with flow control.

import assert from 'node:assert/strict'
import { axe, noProblems, open, selected, test } from './lib.mjs'
import { World, until } from './world.mjs'

export async function testFlowControl() {
  const names = ['flow control: a rule holds invocations, its change is previewed, and its deletion lets them start', 'flow control: a queue is paused and resumed, and leads to those who wait']
  if (!names.some(selected)) return
  const w = await World.start({ flowControl: true })
  const work = async () => JSON.parse((await w.call('platform/scope/acme/send/Orders/work', '1h')).text).invocationId
  const unfinished = async (status) => (await w.api(`/invocations?scope=acme&status=${status}`)).invocations.length
  try {
    await w.register()
    const held = [await work(), await work(), await work()]
    await until('the start of all', async () => (await unfinished('running')) === 3)

    await test(names[0], async () => {
      const t = await open(w, '/ui/flow-control')
      const dialog = t.page.getByRole('dialog')
      await t.page.getByText('No rules').waitFor()
      assert.deepEqual(await axe(t.page), [])
      await t.page.getByRole('button', { name: 'New rule' }).first().click()
      await dialog.getByLabel('Pattern').fill('*')
      await dialog.getByText('1 counter matches now').waitFor()
      await dialog.getByLabel('Concurrency').fill('2')
      await dialog.getByText('1 invocation would wait').waitFor()
      assert.deepEqual(await axe(t.page), [])
      await dialog.getByLabel('Concurrency').fill('3')
      await dialog.getByText('Nothing would wait').waitFor()
      await dialog.getByRole('button', { name: 'Create' }).click()
      await dialog.waitFor({ state: 'detached' })
      const row = t.page.getByRole('row', { name: /3 at a time/ })
      await row.waitFor()
      held.push(await work(), await work())
      await until('two that wait', async () => (await unfinished('pending')) === 2)
      await row.locator('.warn-text').getByText('2', { exact: true }).waitFor()
      assert.deepEqual(await axe(t.page), [])
      await t.page.getByRole('link', { name: 'Counters' }).click()
      const counter = t.page.getByRole('row', { name: /acme/ })
      await counter.getByText('3 of 3').waitFor()
      await counter.locator('.warn-text').getByText('2', { exact: true }).waitFor()
      assert.deepEqual(await axe(t.page), [])
      await t.page.goBack()
      await t.page.getByRole('button', { name: '*', exact: true }).click()
      await dialog.getByLabel('Concurrency').fill('4')
      await dialog.getByText('1 invocation would wait').waitFor()
      await dialog.getByRole('button', { name: 'Save' }).click()
      await until('one that waits', async () => (await unfinished('pending')) === 1)
      await t.page.getByRole('button', { name: 'Actions of *' }).click()
      await t.page.getByRole('menuitem', { name: 'Delete' }).click()
      await dialog.getByText('1 invocation that waits').waitFor()
      await dialog.getByRole('button', { name: 'Delete' }).click()
      await t.page.getByText('No rules').waitFor()
      await until('the start of the last', async () => (await unfinished('running')) === 5)
      noProblems(t)
      await t.close()
    })

    await test(names[1], async () => {
      const t = await open(w, '/ui/flow-control/queues')
      const dialog = t.page.getByRole('dialog')
      const row = t.page.getByRole('row', { name: /acme/ })
      await row.getByText('empty').waitFor()
      await row.getByRole('button', { name: 'Pause the queue' }).click()
      await dialog.getByLabel('Reason').fill('the model is down')
      assert.deepEqual(await axe(t.page), [])
      await dialog.getByRole('button', { name: 'Pause' }).click()
      await row.getByText('paused', { exact: true }).waitFor()
      const waiting = await work()
      held.push(waiting)
      await row.getByRole('link', { name: '1', exact: true }).click()
      await t.page.waitForURL(/scope=acme/)
      await t.page.locator(`tbody a[href*="${waiting}"]`).first().click()
      await t.page.locator('.why').getByText(/paused/).first().waitFor()
      await t.page.getByRole('link', { name: 'Show the queue' }).first().click()
      await t.page.waitForURL(/queues\?id=vq_/)
      await row.getByText('the model is down').waitFor()
      for (const theme of ['light', 'dark']) {
        await t.page.emulateMedia({ colorScheme: theme })
        assert.deepEqual(await axe(t.page), [])
      }
      await row.getByRole('button', { name: 'Resume the queue' }).click()
      await dialog.getByRole('button', { name: 'Resume' }).click()
      await w.status(waiting, 'running')
      await row.getByText('empty').waitFor()
      noProblems(t)
      await t.close()
    })
    for (const id of held) await w.api(`/invocations/${id}/kill`, { method: 'PATCH' })
  } finally {
    await w.stop()
  }
}
