// A header in JSON and the bytes behind it: the length of the header (uint32), the header, the bytes.
export async function fetchBinary(address) {
  const response = await fetch(address);
  if (!response.ok) throw new Error((await response.json()).problem);
  const buffer = await response.arrayBuffer();
  const length = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  return { header, buffer, offset: 4 + length };
}

export async function fetchPoints(address) {
  const { header, buffer, offset } = await fetchBinary(address);
  const x = new Float32Array(buffer, offset, header.points);
  const y = new Float32Array(buffer, offset + 4 * header.points, header.points);
  return { header, x, y };
}

export async function fetchColours(address) {
  const { header, buffer, offset } = await fetchBinary(address);
  return { about: header, codes: new Uint8Array(buffer, offset) };
}

export async function fetchJson(address, options) {
  const response = await fetch(address, options);
  const content = await response.json();
  if (!response.ok) throw new Error(content.fix ? `${content.problem} (${content.fix})` : content.problem);
  return content;
}
