import { beforeAll, describe, expect, it } from "vitest";
import { makeOrganization } from "../node/support/organization.ts";
import { ADMIN_TOKEN } from "../node/support/two-regions.ts";
import { goTo, logIn, openWindow } from "./browser.ts";
import type { WatchedPage } from "./browser.ts";

const browser = openWindow();
let key = "";

beforeAll(async () => {
  const admin = `${browser.origin}/admin/v1`;
  key = (await makeOrganization(admin, ADMIN_TOKEN, { rpmLimit: 1000 })).key;
});

const today = (): string => new Date().toISOString().slice(0, 10);

/** Opens Activity with these daily amounts in micro-credits, the newest last. */
async function activityOf(amounts: readonly number[], groups = 1): Promise<WatchedPage> {
  const page = await logIn(browser, key);
  const newest = Date.parse(today());
  const data = amounts.flatMap((cost_micro, i) =>
    Array.from({ length: groups }, (_, group) => ({
      day: new Date(newest - (amounts.length - 1 - i) * 86_400_000).toISOString().slice(0, 10),
      group: `author/model-${group}`,
      requests: 1,
      prompt_tokens: 1,
      cached_tokens: 0,
      completion_tokens: 1,
      cost_micro,
    })),
  );
  await page.route("**/v1/usage?*", (route) => route.fulfill({ json: { data } }));
  await goTo(page, "Activity");
  await page.locator(".plot svg").waitFor();
  return page;
}

/** Returns the chart's texts that overlap another text or exceed the chart's edge. */
function cutTexts(page: WatchedPage): Promise<readonly string[]> {
  return page.evaluate(() => {
    const edge = document.querySelector(".plot")?.getBoundingClientRect() ?? new DOMRect();
    const texts = [...document.querySelectorAll(".plot text")].map((node) => ({
      text: node.textContent,
      box: node.getBoundingClientRect(),
    }));
    return texts
      .filter(
        ({ box }, i) =>
          box.left < edge.left ||
          box.right > edge.right ||
          box.top < edge.top ||
          box.bottom > edge.bottom ||
          texts.some(
            ({ box: other }, j) =>
              i !== j &&
              box.left < other.right &&
              other.left < box.right &&
              box.top + 2 < other.bottom &&
              other.top + 2 < box.bottom,
          ),
      )
      .map(({ text }) => text);
  });
}

const axis = (page: WatchedPage): Promise<readonly string[]> =>
  page.locator(".plot text.y").allTextContents();

describe("a chart in the console", () => {
  it.each([1, 12, 3_400, 1_250_000, 99_990_000, 250_000_000_000])(
    "draws complete labels at every width for values up to %i micro-credits",
    async (most) => {
      const page = await activityOf([most, Math.ceil(most / 2), Math.ceil(most / 3)]);
      for (const width of [1280, 768, 390]) {
        await page.setViewportSize({ width, height: 900 });
        await page.waitForTimeout(100); // the chart was drawn again after the resize
        expect(await cutTexts(page)).toEqual([]);
      }
      const labels = await axis(page);
      expect(labels.length).toBeLessThanOrEqual(6);
      expect(labels.every((label) => label.startsWith("$"))).toBe(true);
      expect(page.faults).toEqual([]);
    },
  );

  it("labels a single bar, and breaks the axis for a value far above all others", async () => {
    const one = await activityOf([1_230_000]);
    expect(await one.locator(".plot text.strong").allTextContents()).toEqual(["$1.23"]);
    const many = await activityOf([
      ...Array.from({ length: 20 }, () => 2_000_000),
      250_000_000_000,
    ]);
    expect(await many.locator(".plot text.strong").textContent()).toMatch(/^\$250.000\.00$/);
    expect(await many.locator(".break-mark").count()).toBe(1);
    expect(await cutTexts(many)).toEqual([]);
  });

  it("shows the values of a column selected by pointer or arrow keys", async () => {
    const page = await activityOf([1_000_000, 2_000_000, 3_000_000], 2);
    const plot = page.getByRole("slider", { name: /^spend by day/i });
    await page.locator(".plot .series-other, .plot [class^=series]").last().hover();
    await page.locator(".hover").getByText("$6.00").waitFor();
    await page.mouse.move(0, 0);
    await page.getByLabel("Then group by").focus();
    for (let i = 0; i < 12; i += 1) {
      if (await plot.evaluate((node) => node === document.activeElement)) break;
      await page.keyboard.press("Tab");
    }
    await page.keyboard.press("ArrowLeft");
    await page.locator(".hover").getByText("$4.00").waitFor();
    expect(await plot.getAttribute("aria-valuetext")).toMatch(/model-0 \$2\.00, .*model-1 \$2\.00/);
    await page.keyboard.press("Enter");
    await expect.poll(() => page.url()).toContain("range=dates");
    await page.goBack();
    await expect.poll(() => page.url()).not.toContain("range=dates");
  });

  it("zooms into columns selected by dragging, and the Back button undoes the zoom", async () => {
    const page = await activityOf([1_000_000, 2_000_000, 3_000_000]);
    const bars = page.locator(".plot [class^=series]");
    const [from, to] = [await bars.first().boundingBox(), await bars.last().boundingBox()];
    await page.mouse.move((from?.x ?? 0) + 1, (from?.y ?? 0) + 1);
    await page.mouse.down();
    await page.mouse.move((to?.x ?? 0) + 1, (to?.y ?? 0) + 1, { steps: 4 });
    await page.mouse.up();
    await expect.poll(() => page.url()).toMatch(new RegExp(`from=.*to=${today()}`));
    await page.goBack();
    await expect.poll(() => page.url()).not.toContain("from=");
  });

  it("distinguishes series by patterns in print and in forced colors", async () => {
    const page = await activityOf([1_000_000, 2_000_000], 6);
    const patterns = () =>
      page.evaluate(() => {
        const bars = [...document.querySelectorAll(".plot [class^=series]")];
        return new Set(bars.map((bar) => getComputedStyle(bar).fill)).size;
      });
    for (const look of [{ media: "print" }, { forcedColors: "active" }] as const) {
      await page.emulateMedia(look);
      expect(
        await page
          .locator(".plot [class^=series]")
          .first()
          .evaluate((bar) => getComputedStyle(bar).fill),
      ).toContain("#tile-");
      expect(await patterns()).toBe(6);
    }
  });

  it("offers a table with the chart's numbers", async () => {
    const page = await activityOf([1_000_000, 250_000_000_000]);
    await page.getByRole("button", { name: "View as table" }).click();
    const cells = page.getByRole("region", { name: /^spend by day/i }).getByRole("cell");
    expect(
      (await cells.allTextContents())
        .slice(0, 4)
        .filter((text) => text.startsWith("$"))
        .map((text) => text.replaceAll(/[^\d.$]/g, "")),
    ).toEqual(["$250000.00", "$1.00"]);
  });
});
