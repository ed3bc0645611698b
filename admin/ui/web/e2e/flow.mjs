// Tests of a server with flow control.

import assert from 'node:assert/strict'
import { axe, barIsFull, noProblems, open, selected, test } from './lib.mjs'
import { World, until } from './world.mjs'

export async function testFlowControl() {
  const names = ['flow control: a rule holds invocations, its change is previewed, and its deletion lets them start', 'flow control: a queue is paused and resumed, and leads to those who wait', 'flow control: objects with a scope are chosen by it, with their holder and queue',
    'flow control: the menu of a rule is complete on a narrow screen',
    'flow control: a scope is paused and resumed, with all its queues']
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
      await t.page.getByLabel('Find a rule').fill('nothing')
      await t.page.getByText('No such rule').waitFor()
      assert.deepEqual(await axe(t.page), [])
      await t.page.getByLabel('Find a rule').fill('')
      await row.waitFor()
      held.push(await work(), await work())
      await until('two that wait', async () => (await unfinished('pending')) === 2)
      await row.locator('.warn-text').getByText('2', { exact: true }).waitFor()
      assert.deepEqual(await axe(t.page), [])
      await t.page.getByRole('link', { name: 'Counters' }).click()
      const counter = t.page.getByRole('row', { name: /acme/ })
      await counter.getByText('3 of 3').waitFor()
      await barIsFull(counter)
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
      await t.page.getByLabel('Only of a scope').fill('globex')
      await t.page.keyboard.press('Enter')
      await t.page.getByText('No queue of this scope').waitFor()
      await t.page.getByLabel('Only of a scope').fill('acme')
      await t.page.keyboard.press('Enter')
      await row.getByText('empty').waitFor()
      await t.page.getByRole('columnheader', { name: 'Average wait' }).waitFor()
      const { average_wait: average } = (await w.api('/vqueues?scope=acme')).vqueues[0]
      assert.match(average, /^(PT[\d.]+S|P0D)$/)
      assert.match(await row.innerText(), /\s(0ms|<1ms|[\d.]+m?s)\s/)
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
      await t.page.locator('.lifeline').getByText('Has waited').waitFor()
      await t.page.locator('.why').getByText('queue of acme').waitFor()
      await t.page.getByRole('link', { name: /^average / }).waitFor()
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
    await test(names[4], async () => {
      const t = await open(w, '/ui/flow-control/counters?scope=initech', { allow: [/503/] })
      const dialog = t.page.getByRole('dialog')
      const row = t.page.getByRole('row', { name: /initech/ })
      // A scope that nothing uses can be paused in advance.
      await t.page.getByRole('button', { name: 'Pause the scope initech' }).click()
      await dialog.getByText('also those of limit keys and services that come later').waitFor()
      await dialog.getByLabel('Reason').fill('the model is down')
      assert.deepEqual(await axe(t.page), [])
      await t.page.route('**/limits/scopes/**', (r) => r.fulfill({ status: 503, json: { message: 'no leader' } }), { times: 1 })
      await dialog.getByRole('button', { name: 'Pause' }).click()
      await dialog.getByRole('alert').getByText('no leader').waitFor()
      await dialog.getByRole('button', { name: 'Pause' }).click()
      await dialog.waitFor({ state: 'detached' })
      await row.getByText('paused', { exact: true }).waitFor()
      await row.getByText('the model is down').waitFor()
      for (const theme of ['light', 'dark']) {
        await t.page.emulateMedia({ colorScheme: theme })
        assert.deepEqual(await axe(t.page), [])
      }
      const send = async (limitKey) => JSON.parse((await w.call(`platform/scope/initech/send/Orders/work?limit-key=${limitKey}`, '1h')).text).invocationId
      const waiting = [await send('eu'), await send('us')]
      await until('two that wait', async () => (await w.api('/invocations?scope=initech&status=pending')).invocations.length === 2)
      assert.equal(await row.getByRole('button', { name: /^(Pause|Resume)/ }).count(), 1, 'limit keys cannot be paused')
      // The queue and the invocation lead back to the pause.
      await t.page.goto(`${w.admin}/ui/invocations/${waiting[0]}`)
      await t.page.locator('.why').getByText('The scope initech was paused').first().waitFor()
      assert.doesNotMatch(await t.page.locator('.why').innerText(), /\dT\d\d:/, 'times are shown like all others')
      await t.page.getByRole('link', { name: 'Show the queue' }).first().click()
      await t.page.getByRole('link', { name: 'scope paused' }).click()
      await t.page.waitForURL(/counters\?scope=initech/)
      await t.page.getByRole('button', { name: 'Resume the scope initech' }).click()
      assert.deepEqual(await axe(t.page), [])
      await dialog.getByRole('button', { name: 'Resume' }).click()
      for (const id of waiting) await w.status(id, 'running')
      await t.page.getByRole('button', { name: 'Pause the scope initech' }).waitFor()
      noProblems(t)
      await t.close()
      for (const id of waiting) await w.api(`/invocations/${id}/kill`, { method: 'PATCH' })
    })

    await test(names[3], async () => {
      await w.api('/limits/rules/narrow', { method: 'PUT', body: { limits: { concurrency: 7 } } })
      const t = await open(w, '/ui/flow-control', { width: 390 })
      await t.page.getByRole('button', { name: 'Actions of narrow' }).click()
      const item = t.page.getByRole('menuitem', { name: 'Delete' })
      await item.waitFor()
      const visible = await item.evaluate((e) => {
        const at = e.getBoundingClientRect()
        return e.contains(document.elementFromPoint(at.x + at.width / 2, at.y + at.height / 2))
      })
      assert.equal(visible, true, 'the menu is cut off')
      assert.equal(await t.page.evaluate(() => document.documentElement.scrollWidth > innerWidth), false, 'the page scrolls sideways')
      noProblems(t)
      await t.close()
      await w.api('/limits/rules/narrow', { method: 'DELETE' })
    })

    await test(names[2], async () => {
      const t = await open(w, '/ui/services/Cart?invoke=hold&key=shared')
      await t.page.getByText('Options', { exact: true }).click()
      await t.page.getByLabel('Scope', { exact: true }).fill('globex')
      await t.page.getByRole('button', { name: 'Send', exact: true }).first().click()
      await t.page.locator('.cm-content').click()
      await t.page.keyboard.press('ControlOrMeta+a')
      await t.page.keyboard.insertText('"1h"')
      await t.page.getByText(/platform\/scope\/globex\/send\/Cart\/shared\/hold/).waitFor()
      for (let i = 0; i < 3; i++) {
        await t.page.getByRole('button', { name: 'Send', exact: true }).last().click()
        await t.page.locator('.answer').getByText('Accepted', { exact: true }).waitFor()
      }
      await until('the queue', async () => (await w.api('/objects?service=Cart&scope=globex')).objects[0]?.waiting === 2)
      assert.deepEqual(await w.api('/services/Cart/scopes'), { scopes: ['globex'] })
      assert.equal((await w.api('/objects/Cart/shared?scope=globex')).waiting, 2)
      assert.deepEqual((await w.api('/objects?service=Cart')).objects, [])
      await t.page.goto(`${w.admin}/ui/objects?service=Cart`)
      await t.page.getByText('No state yet').waitFor()
      await t.page.getByLabel('Scope').selectOption('globex')
      await t.page.waitForURL(/scope=globex/)
      const row = t.page.getByRole('row', { name: /shared/ })
      await row.getByText('inv_').waitFor()
      await row.getByRole('link', { name: '2', exact: true }).waitFor()
      assert.deepEqual(await axe(t.page), [])
      await row.getByRole('link', { name: 'shared' }).click()
      const waiting = t.page.getByRole('table', { name: 'Waiting' })
      await waiting.getByRole('link', { name: /hold/ }).nth(1).waitFor()
      assert.equal(await waiting.locator('tbody tr').count(), 2)
      // The links of an invocation lead back to the object of its scope.
      for (const name of ['Show the holder of the key and the waiting invocations', 'shared']) {
        await waiting.getByRole('link', { name: /hold/ }).nth(1).click()
        await t.page.locator('main').getByRole('link', { name, exact: true }).click()
        await t.page.waitForURL(/objects\/Cart\/shared\?scope=globex/)
        await waiting.getByRole('link', { name: /hold/ }).nth(1).waitFor()
      }
      assert.deepEqual(await axe(t.page), [])
      for (const i of (await w.api('/invocations?scope=globex')).invocations) held.push(i.id)
      noProblems(t)
      await t.close()
    })
    for (const id of held) await w.api(`/invocations/${id}/kill`, { method: 'PATCH' })
  } finally {
    await w.stop()
  }
}
