// Tests of a cluster of three servers, of which some are killed while pages of the first one are open.

import assert from 'node:assert/strict'
import { axe, noProblems, open, selected, test } from './lib.mjs'
import { World, until } from './world.mjs'

const lost = [/Failed to load resource/, /ERR_/]

const healthy = (w, status) => until(`the status ${status}`, async () => (await w.api('/cluster-health')).status === status)

/** No page is blank or replaced by an error. */
async function usable(t, path, text) {
  await t.page.goto(t.admin + path)
  await t.page.locator('main').getByText(text).first().waitFor()
  assert.equal(await t.page.locator('main .error-box').count(), 0, `${path} shows an error`)
}

export async function testCluster() {
  const names = ['cluster: a killed node is shown, and pages stay usable', 'cluster: the leadership of a partition is transferred from its page', 'cluster: the leader of a partition is moved, killed and replaced while its invocation is open', 'cluster: without a majority, pages say so and recover by themselves', 'cluster: a node is drained after a warning, undrained, and removed once it is lost']
  if (!names.some(selected)) return
  const w = await World.start({ nodes: 3 })
  try {
    await healthy(w, 'healthy')
    await w.register()
    for (let i = 0; i < 20; i++) await until('a call', async () => (await w.call(`Cart/customer-${i}/add`, { item: 'pen', amount: i })).status === 200)
    const waiting = await w.send('Orders/wait', '2h')
    await w.status(waiting, 'suspended')

    await test(names[0], async () => {
      const t = { ...(await open(w, '/ui/cluster', { allow: lost })), admin: w.admin }
      const list = await open(w, '/ui/invocations', { allow: lost })
      const node = (name) => t.page.getByRole('article', { name })
      await node('n3').getByText('Alive').waitFor()
      await list.page.locator('tbody tr').nth(20).waitFor()
      await node('n1').getByText(/^\d.* of \d+ cores?$/).waitFor()
      await node('n1').getByText(/^\d.* free$/).waitFor()
      const changes = t.page.locator('.events li')
      await changes.filter({ hasText: 'n3 started, version' }).first().waitFor()
      await t.page.evaluate(() => {
        window.contradictions = []
        new MutationObserver(() => {
          const text = (s) => document.querySelector(s)?.textContent ?? ''
          if (/n3.* is down/.test(text('.health-card')) && /Alive/.test(text('.node[aria-label=n3]'))) window.contradictions.push(text('.node[aria-label=n3]'))
        }).observe(document.querySelector('main'), { subtree: true, childList: true, characterData: true })
      })
      await w.stopServer(2)
      await node('n3').getByText('Not responding').waitFor()
      await t.page.getByRole('heading', { name: 'Degraded' }).waitFor()
      await t.page.getByText('Start n3 again with the same data directory').waitFor()
      assert.deepEqual(await t.page.evaluate(() => window.contradictions), [], 'the card of the node contradicts the health of the cluster')
      await changes.filter({ hasText: 'n3 no longer responds' }).first().waitFor()
      await t.page.getByText('Incomplete: no events from n3').waitFor()
      await t.page.getByRole('table', { name: 'Partitions and nodes' }).waitFor()
      assert.deepEqual(await axe(t.page), [])
      await until('calls without the node', async () => (await w.call('Cart/after/add', { item: 'pen', amount: 1 })).status === 200)
      await list.page.locator('tbody').getByText('after').first().waitFor()
      await usable(t, '/ui/', 'Cart')
      await usable(t, '/ui/objects?service=Cart', 'customer-7')
      await usable(t, `/ui/invocations/${waiting}`, 'Suspended')
      await t.page.goto(`${w.admin}/ui/cluster`)
      await w.startServer(2)
      await node('n3').getByText('Alive').waitFor()
      await t.page.getByRole('heading', { name: 'Healthy' }).waitFor()
      for (const opened of [t, list]) {
        noProblems(opened)
        await opened.close()
      }
    })

    await test(names[1], async () => {
      await healthy(w, 'healthy')
      // A node that has returned gets its leaderships back after a while.
      await until('the preferred leaders', async () => (await w.api('/cluster/partitions')).partitions.every((p) => p.leader === p.placed[0]))
      const leaderOf = async () => (await w.api('/cluster/partitions')).partitions.find((p) => p.id === 1).leader
      const { nodes } = await w.api('/cluster-health')
      const names = new Map(nodes.map((n) => [n.id, n.name]))
      const before = await leaderOf()
      const t = await open(w, '/ui/cluster')
      await t.page.getByRole('button', { name: 'Partition 1', exact: true }).click()
      await t.page.getByRole('table', { name: 'Replicas of partition 1' }).waitFor()
      await t.page.getByRole('button', { name: 'Transfer' }).click()
      const targets = t.page.getByRole('menuitem')
      await targets.nth(1).waitFor()
      assert.equal(await targets.count(), 2, 'the leader itself is no target')
      const target = (await targets.first().innerText()).trim()
      assert.notEqual(target, names.get(before))
      assert.deepEqual(await axe(t.page), [])
      await targets.filter({ hasText: target }).click()
      await t.page.getByRole('dialog').getByText(`to ${target}`).waitFor()
      await t.page.getByRole('dialog').getByRole('button', { name: 'Transfer' }).click()
      await t.page.getByText(`${target} leads partition 1`).first().waitFor()
      await until('the new leader', async () => names.get(await leaderOf()) === target)
      await t.page.getByRole('row', { name: new RegExp(`^${target}\\b.*leader`) }).waitFor()
      noProblems(t)
      await t.close()
    })

    await test(names[2], async () => {
      await healthy(w, 'healthy')
      const t = await open(w, '/ui/cluster', { allow: lost })
      for (const { id } of (await w.api('/cluster/partitions')).partitions) {
        await until(`n2 leads partition ${id}`, () => w.api(`/cluster/partitions/${id}/transfer?to=n2`, { method: 'PATCH' }).then(() => true))
      }
      await t.page.goto(`${w.admin}/ui/invocations/${waiting}`)
      await t.page.locator('.inv-head').getByText('Suspended').waitFor()
      await w.stopServer(1)
      await t.page.getByRole('button', { name: 'Cancel' }).click()
      await t.page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click()
      await t.page.locator('.inv-head').getByText('Cancelled').waitFor()
      await w.status(waiting, 'completed')
      await w.startServer(1)
      await healthy(w, 'healthy')
      noProblems(t)
      await t.close()
    })

    await test(names[3], async () => {
      await healthy(w, 'healthy')
      const t = await open(w, '/ui/invocations', { allow: lost })
      await t.page.locator('tbody tr').nth(20).waitFor()
      const cluster = await open(w, '/ui/cluster', { allow: lost })
      await cluster.page.getByRole('heading', { name: 'Healthy' }).waitFor()
      await w.stopServer(1)
      await w.stopServer(2)
      await cluster.page.getByRole('heading', { name: 'Unavailable' }).waitFor()
      await cluster.page.getByRole('article', { name: 'n2' }).getByText('Not responding').waitFor()
      assert.deepEqual(await axe(cluster.page), [])
      await cluster.page.reload() // nothing is known from before
      await cluster.page.getByText('the metadata has no leader').waitFor()
      await cluster.page.getByRole('article', { name: 'n2' }).getByText('Not responding').waitFor()
      assert.ok(await t.page.locator('tbody tr').count() > 20, 'the list keeps what it has shown')
      await t.page.goto(`${w.admin}/ui/objects?service=Cart`)
      await t.page.locator('main').getByRole('button', { name: /Retry|Try again/ }).first().waitFor()
      assert.deepEqual(await axe(t.page), [])
      await w.startServer(1)
      await w.startServer(2)
      await cluster.page.getByRole('heading', { name: 'Healthy' }).waitFor()
      await t.page.getByRole('link', { name: 'customer-7' }).waitFor()
      for (const opened of [t, cluster]) {
        noProblems(opened)
        await opened.close()
      }
    })

    await test(names[4], async () => {
      await healthy(w, 'healthy')
      const t = await open(w, '/ui/cluster', { allow: [...lost, /status of 409/] })
      const n3 = t.page.getByRole('article', { name: 'n3' })
      const dialog = t.page.getByRole('dialog')
      const choose = async (action) => {
        await t.page.getByRole('button', { name: 'Actions of n3' }).click()
        await t.page.getByRole('menuitem', { name: action, exact: true }).click()
      }
      await n3.getByText('Alive').waitFor()
      await choose('Drain')
      await dialog.getByRole('button', { name: 'Drain' }).click()
      await dialog.getByRole('alert').getByText('survives no node failure').waitFor()
      assert.equal(await dialog.getByText('--force').count(), 0, 'the advice is for the command line')
      assert.equal(await dialog.getByRole('button', { name: 'Drain' }).isDisabled(), true)
      assert.deepEqual(await axe(t.page), [])
      const draining = async () => (await w.api('/cluster/nodes')).nodes.find((n) => n.name === 'n3').draining
      assert.equal(await draining(), false)
      await dialog.getByRole('checkbox', { name: /Drain it anyway/ }).check()
      await dialog.getByRole('button', { name: 'Drain' }).click()
      await dialog.waitFor({ state: 'detached' })
      await n3.getByText('Draining').waitFor()
      assert.equal(await draining(), true)
      assert.deepEqual(await axe(t.page), [])
      await choose('Undrain')
      await n3.getByText('Alive').waitFor()
      assert.equal(await draining(), false)
      await healthy(w, 'healthy')

      await t.page.getByRole('button', { name: 'Actions of n3' }).click()
      assert.equal(await t.page.getByRole('menuitem', { name: 'Remove from the cluster' }).isDisabled(), true, 'a node that runs is not removed')
      await t.page.reload() // closes the menu
      await n3.getByText('Alive').waitFor()
      await w.stopServer(2)
      await n3.getByText('Not responding').waitFor()
      await t.page.getByText('Start n3 again with the same data directory').waitFor()
      await choose('Remove from the cluster')
      assert.equal(await dialog.getByRole('button', { name: 'Remove' }).isDisabled(), true)
      await dialog.getByRole('textbox').fill('n3')
      await dialog.getByRole('button', { name: 'Remove' }).click()
      await dialog.getByRole('checkbox', { name: /Remove it anyway/ }).waitFor()
      assert.deepEqual(await axe(t.page), [])
      await dialog.getByRole('checkbox', { name: /Remove it anyway/ }).check()
      await dialog.getByRole('button', { name: 'Remove' }).click()
      await dialog.waitFor({ state: 'detached' })
      await n3.waitFor({ state: 'detached' })
      assert.deepEqual((await w.api('/cluster/nodes')).nodes.map((n) => n.name).sort(), ['n1', 'n2'])
      await until('a call', async () => (await w.call('Cart/left/add', { item: 'pen', amount: 1 })).status === 200)
      noProblems(t)
      await t.close()
    })
  } finally {
    await w.stop()
  }
}
