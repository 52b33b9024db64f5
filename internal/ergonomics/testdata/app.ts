import { readFile } from 'node:fs/promises';

export interface Order {
  id: string;
  items: Item[];
  note?: string;
}

interface Item {
  sku: string;
  count: number;
  price: number;
}

export function total(order: Order): number {
  let sum = 0;
  for (const item of order.items) {
    if (item.count <= 0) {
      throw new RangeError("bad count: " + item.sku);
    }
    sum += item.count * item.price;
  }
  return Math.round(sum * 100) / 100;
}

export async function loadOrders(path: string): Promise<Order[]> {
  const raw = await readFile(path, 'utf8');
  const parsed = JSON.parse(raw);
  if (!Array.isArray(parsed)) {
    throw new TypeError('expected a list of orders');
  }
  return parsed.filter((o) => o && o.items && o.items.length > 0);
}

const escapes: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
};

export function render(order: Order): string {
  const rows = order.items.map((item) => {
    const label = item.sku.replace(/[&<>]/g, (c) => escapes[c]);
    return "<li class=\"item\">" + label + "</li>";
  });
  return "<ul>\n" + rows.join("\n") + "\n</ul>";
}
