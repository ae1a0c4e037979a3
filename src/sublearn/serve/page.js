
"use strict";

// --- small helpers -------------------------------------------------------------------------------

const find = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";

function make(tag, properties = {}, ...children) {
  const { data = {}, vars = {}, aria = {}, ...rest } = properties;
  const node = Object.assign(document.createElement(tag), rest);
  for (const [name, value] of Object.entries(aria)) node.setAttribute(name, value);
  for (const [name, value] of Object.entries(vars)) node.style.setProperty(name, value);
  Object.assign(node.dataset, data);
  node.append(...children);
  return node;
}

function draw(tag, attributes, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

const short = (number) => {
  const size = Math.abs(number);
  return size !== 0 && (size < 1e-3 || size >= 1e6) ? number.toExponential(2) : String(+number.toPrecision(4));
};
const sigmoid = (score) => 1 / (1 + Math.exp(-score));
const numbersOf = (text) => text.split(/[\s,;]+/).filter(Boolean).map((word) => {
  const value = Number(word);
  if (!Number.isFinite(value)) throw new Error(`a value must be a number, got ${word}`);
  return value;
});

// A label that is an address is shown by its last part, as a link.
function nameOf(label) {
  const text = String(label);
  if (!/^https?:\/\/\S+$/.test(text)) return text;
  const parts = decodeParts(text.replace(/[/#]+$/, "").split(/[/#]/));
  return make("a", { href: text, title: text, target: "_blank", rel: "noopener noreferrer" }, parts.at(-1) || text);
}

function decodeParts(parts) {
  try { return parts.map(decodeURIComponent); } catch { return parts; }
}

// --- the server ----------------------------------------------------------------------------------

let model, form, models = [], limits = {};

async function request(path, question) {
  const headers = {};
  if (find("token").value) headers.Authorization = `Bearer ${find("token").value}`;
  const options = { headers };
  if (question !== undefined) {
    headers["Content-Type"] = "application/json";
    Object.assign(options, { method: "POST", body: JSON.stringify(question) });
  }
  let response;
  try { response = await fetch(path, options); } catch { throw new Error("the server does not answer"); }
  if (response.status === 401) find("gate").hidden = false;
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error);
  return answer;
}

const pathOf = (what) => `models/${encodeURIComponent(model.name)}/${what}`;

// --- forms, by what a question holds -------------------------------------------------------------

function area(label, value, isCode, hint) {
  const input = make("textarea", { id: "question", value, className: isCode ? "code" : "", spellcheck: !isCode && "texts" in model.example });
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) find("form").requestSubmit();
  });
  const nodes = [make("label", { htmlFor: "question" }, label), input];
  if (hint) nodes.push(make("p", { className: "hint" }, hint));
  return { nodes, input };
}

function numberField(id, label, value, attributes) {
  const input = make("input", { id, type: "number", value, inputMode: "decimal", ...attributes });
  return { input, node: make("label", {}, label, input) };
}

// How many labels, from which score on, and as what.
function labelOptions() {
  const k = numberField("k", "Labels", Math.min(10, model.n_labels), { min: 1, max: model.n_labels, step: 1 });
  const threshold = numberField("threshold", "Threshold", "", { step: "any", placeholder: "none" });
  const nodes = [k.node, threshold.node];
  const box = make("input", { id: "probabilities", type: "checkbox", checked: true });
  if (model.probabilities) nodes.push(make("label", { className: "check" }, box, "Probabilities"));
  const read = () => {
    const found = { k: Math.max(1, Math.floor(k.input.valueAsNumber || 1)), probabilities: model.probabilities && box.checked };
    if (threshold.input.value) found.threshold = threshold.input.valueAsNumber;
    return found;
  };
  return { node: make("div", { className: "options" }, ...nodes), read };
}

function textForm() {
  const { nodes, input } = area("Text", model.example.texts[0], false);
  const options = labelOptions();
  return {
    nodes: [...nodes, options.node],
    read: () => ({ texts: [input.value], ...options.read() }),
    show: (question, answer) => [ranking(answer.predictions[0], { text: input.value })],
  };
}

function rowForm() {
  const row = model.feature_names || model.n_features <= 24 ? fieldsOfRow() : areaOfRow();
  const options = model.example.k === undefined ? { read: () => ({}) } : labelOptions();
  return {
    nodes: [...row.nodes, ...(options.node ? [options.node] : [])],
    read: () => ({ rows: row.read(), ...options.read() }),
    show: (question, answer) => answer.predictions.flatMap((found, i) => [
      ...(answer.predictions.length > 1 ? [make("h2", {}, `Row ${i + 1}`)] : []),
      ...pictures(question.rows[i]),
      rowAnswer(found, question.rows[i]),
    ]),
  };
}

function rowAnswer(found, row) {
  if (typeof found === "number") return make("p", { className: "large" }, short(found));
  if (Array.isArray(found)) return table(["Output", "Value"], found.map((value, i) => [String(i + 1), short(value)]));
  return found.bound === undefined ? ranking(found, { row }) : labelSet(found);
}

function fieldsOfRow() {
  const names = model.feature_names || Array.from({ length: model.n_features }, (_, j) => j);
  const [first] = model.example.rows, given = first.indices ? Object.fromEntries(first.indices.map((j, i) => [j, first.values[i]])) : first;
  const inputs = names.map((name) => make("input", { type: "number", step: "any", value: given[name] ?? 0, inputMode: "decimal" }));
  const labels = names.map((name, j) => make("label", {}, make("span", { title: String(name) }, model.feature_names ? name : `Column ${name}`), inputs[j]));
  return {
    nodes: [make("div", { className: "values", aria: { role: "group", "aria-label": "Features" } }, ...labels)],
    read: () => [inputs.map((input) => input.valueAsNumber || 0)],
  };
}

function areaOfRow() {
  const [first] = model.example.rows;
  const value = first.indices ? first.indices.map((j, i) => `${j}:${first.values[i]}`).join(" ") : JSON.stringify(first);
  const hint = `A row a line: ${model.n_features.toLocaleString()} values, or column:value for those that are not 0, counted from 0, or JSON.`;
  const { nodes, input } = area("Rows", value, true, hint);
  return { nodes, read: () => input.value.split("\n").filter((line) => line.trim()).map(parsedRow) };
}

function parsedRow(line) {
  if (/^\s*[[{]/.test(line)) return JSON.parse(line);
  if (!line.includes(":")) return numbersOf(line);
  const pairs = line.trim().split(/[\s,]+/).map((pair) => numbersOf(pair.replace(":", " ")));
  return { indices: pairs.map(([column]) => column), values: pairs.map(([, value]) => value) };
}

function sentenceForm() {
  const lines = model.example.sequences.map((words) => words.join(" ")).join("\n");
  const { nodes, input } = area("Sentences", lines, false, "A sentence a line, with blanks between words.");
  const read = () => ({ sequences: input.value.split("\n").map((line) => line.split(/\s+/).filter(Boolean)).filter((words) => words.length) });
  return { nodes, read, show: (question, answer) => answer.predictions.map(({ tags }, i) => sentence(question.sequences[i], tags)) };
}

function jsonForm() {
  const { nodes, input } = area("Question (JSON)", JSON.stringify(model.example, null, 1), true);
  const shown = (position) => Array.isArray(position) ? position.join(" ") : JSON.stringify(position);
  return {
    nodes,
    read: () => {
      try { return JSON.parse(input.value); } catch (error) { throw new Error(`the question must be JSON, got ${error.message}`); }
    },
    show: (question, answer) => answer.predictions?.every((found) => found.tags)
      ? answer.predictions.map(({ tags }, i) => sentence(question.sequences[i].map(shown), tags))
      : [make("pre", {}, JSON.stringify(answer, null, 1))],
  };
}

function loadForm() {
  const { future } = model.example;
  const horizon = numberField("horizon", "Steps ahead", "", { min: 1, step: 1, placeholder: "as fitted" });
  const coverage = numberField("coverage", "Interval holds, %", 80, { min: 1, max: 99, step: "any" });
  const nodes = [make("div", { className: "options" }, horizon.node, coverage.node)];
  const rows = future && area("What is known of the steps", future.map((row) => row.join(" ")).join("\n"), true, `A step a line, ${future[0].length} values each.`);
  if (rows) { nodes.push(...rows.nodes); horizon.input.value = future.length; }
  const read = () => {
    const found = {};
    if (horizon.input.value) found.horizon = horizon.input.valueAsNumber;
    if (coverage.input.value) found.coverage = coverage.input.valueAsNumber / 100;
    if (rows) found.future = rows.input.value.split("\n").filter((line) => line.trim()).map(numbersOf);
    return found;
  };
  return { nodes, read, show: (question, answer) => loads(answer) };
}

function formOf({ example }) {
  if (example.texts) return textForm();
  if (example.rows) return rowForm();
  if (example.sequences) return typeof example.sequences[0][0] === "string" ? sentenceForm() : jsonForm();
  return "horizon" in example ? loadForm() : jsonForm();
}

// --- answers -------------------------------------------------------------------------------------

function table(heads, rows) {
  const cells = (tag, values) => values.map((value, j) => make(tag, { className: j ? "number" : "" }, value));
  return make("table", {}, make("thead", {}, make("tr", {}, ...cells("th", heads))), make("tbody", {}, ...rows.map((row) => make("tr", {}, ...cells("td", row)))));
}

// Labels with bars on an absolute scale: a probability as it is, a score from nothing to certain.
function ranking({ labels, scores, probabilities, empty }, asked) {
  if (empty) return make("p", {}, "There is no text, hence there are no labels.");
  if (!labels.length) return make("p", {}, "No label reaches the threshold.");
  const values = probabilities || scores, isShare = probabilities || model.scores === "probabilities", explains = model.explains.includes("contributions");
  const lines = labels.map((label, i) => {
    const width = 100 * (isShare ? values[i] : sigmoid(values[i]));
    const name = make("td", { className: "bar", data: { width: width.toFixed(1) } }, nameOf(label));
    name.style.backgroundSize = `${width}% 100%`;
    const cells = [name, make("td", { className: "number" }, short(values[i]))];
    if (explains) cells.push(make("td", { className: "button" }, whyButton(label, asked)));
    return make("tr", {}, ...cells);
  });
  const head = [make("th", { scope: "col" }, "Label"), make("th", { scope: "col", className: "number", title: isShare ? "" : "Above 0 the label would be predicted on its own; the bar is 1 / (1 + exp(-score))" }, isShare ? "Probability" : "Score")];
  if (explains) head.push(make("th", { className: "button" }));
  const found = make("table", {}, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...lines));
  if (model.explains.includes("path")) showPaths(labels, lines, asked);
  return found;
}

async function showPaths(labels, lines, { row }) {
  const { explanations } = await request(pathOf("explain"), { row, labels });
  explanations.forEach(({ path }, i) => {
    const names = path.slice(0, -1).flatMap((node) => [nameOf(node), " › "]);
    if (names.length) lines[i].firstChild.prepend(make("span", { className: "path" }, ...names));
  });
}

function whyButton(label, asked) {
  const button = make("button", { type: "button", className: "why", aria: { "aria-expanded": "false", "aria-label": `Why ${label}` } }, "why");
  button.addEventListener("click", async () => {
    const line = button.closest("tr"), isOpen = button.getAttribute("aria-expanded") === "true";
    for (const other of document.querySelectorAll("tr.reasons")) other.remove();
    for (const other of document.querySelectorAll(".why")) other.setAttribute("aria-expanded", "false");
    if (isOpen) return;
    button.setAttribute("aria-expanded", "true");
    const cell = make("td", { colSpan: 3 });
    line.after(make("tr", { className: "reasons" }, cell));
    try {
      const item = "text" in asked ? { text: asked.text } : { row: asked.row };
      const { explanations } = await request(pathOf("explain"), { ...item, labels: [label], k: limits.max_k });
      cell.append(...reasons(explanations[0], asked));
    } catch (error) { cell.append(make("p", { className: "bad" }, error.message)); }
  });
  return button;
}

// The words behind a label, in the text and as a list.
function reasons({ contributions, bias, others, n_others }, asked) {
  const nodes = [];
  if ("text" in asked) nodes.push(make("div", { className: "marked" }, ...marked(asked.text, contributions)));
  nodes.push(...pictures(asked.row, contributions));
  const listed = contributions.slice(0, 8), rest = contributions.slice(8);
  const sum = rest.reduce((total, { contribution }) => total + contribution, others);
  const parts = listed.map(({ feature, contribution }) => [typeof feature === "number" ? `column ${feature}` : feature, contribution]);
  if (rest.length + n_others) parts.push([`${rest.length + n_others} others`, sum]);
  parts.push(["bias", bias]);
  const largest = Math.max(...parts.map(([, part]) => Math.abs(part))) || 1;
  nodes.push(make("div", { className: "parts" }, ...parts.flatMap(([name, part]) => [
    make("span", { className: "part-name" }, name),
    make("div", { className: `part-bar ${part < 0 ? "against" : "for"}`, vars: { width: `${100 * Math.abs(part) / largest}%` } }),
    make("span", { className: "amount" }, (part > 0 ? "+" : "") + short(part)),
  ])));
  nodes.push(make("p", { className: "legend" }, make("span", { className: "for" }, "speaks for"), " ", make("span", { className: "against" }, "speaks against"), " the label; the parts add up to its score."));
  return nodes;
}

// Spans overlap, above all those of parts of words: each character has the sum of what covers it.
function marked(text, contributions) {
  const letters = Array.from(text), weights = new Float64Array(letters.length);
  for (const { spans, contribution } of contributions) {
    const covered = spans.reduce((total, [start, end]) => total + end - start, 0);
    for (const [start, end] of spans) for (let i = start; i < end; i++) weights[i] += contribution / covered;
  }
  const largest = weights.reduce((most, weight) => Math.max(most, Math.abs(weight)), 0);
  const nodes = [];
  for (let start = 0, end; start < letters.length; start = end) {
    for (end = start + 1; end < letters.length && weights[end] === weights[start];) end++;
    const run = letters.slice(start, end).join(""), share = largest && weights[start] / largest;
    nodes.push(Math.abs(share) < 0.02 ? run : make("mark", { className: share < 0 ? "against" : "for", title: short(weights[start]), vars: { "--strength": (0.12 + 0.58 * Math.abs(share)).toFixed(3) } }, run));
  }
  return nodes;
}

// A row of 64, 784, ... values is taken for a square image.
function pictures(row, contributions) {
  const side = Math.sqrt(model.n_features);
  if (!row || side < 8 || side > 256 || side % 1 || model.feature_names) return [];
  const values = new Float64Array(side * side);
  if (contributions) for (const { feature, contribution } of contributions) values[feature] = contribution;
  else if (Array.isArray(row)) values.set(row.slice(0, side * side));
  else row.indices?.forEach((column, i) => { values[column] = row.values[i]; });
  const caption = contributions ? "What speaks for and against" : "The row as an image";
  return [make("div", { className: "pictures" }, make("figure", {}, canvas(values, side, Boolean(contributions)), make("figcaption", {}, caption)))];
}

function canvas(values, side, isSigned) {
  const node = make("canvas", { width: side, height: side, aria: { role: "img", "aria-label": `Image of ${side} by ${side} values` } });
  const context = node.getContext("2d"), image = context.createImageData(side, side);
  const tones = ["--for", "--against"].map((name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim().split(/\s+/).map(Number));
  const largest = values.reduce((most, value) => Math.max(most, Math.abs(value)), 0) || 1;
  values.forEach((value, i) => {
    const tone = isSigned ? tones[value < 0 ? 1 : 0] : [128, 128, 128].map(() => 255 * Math.max(0, value) / largest);
    image.data.set([...tone, isSigned ? 255 * Math.abs(value) / largest : 255], 4 * i);
  });
  context.putImageData(image, 0, 0);
  return node;
}

function labelSet({ labels, score, bound }) {
  const chips = labels.map((label) => make("span", {}, nameOf(label)));
  return make("div", {}, make("div", { className: "chips" }, ...(chips.length ? chips : [make("small", {}, "no label")])), table(["", "Score", "No set exceeds"], [["of this set", short(score), short(bound)]]));
}

function sentence(words, tags) {
  const hues = new Map();
  const hueOf = (tag) => { if (!hues.has(tag)) hues.set(tag, (hues.size * 137.5 + 170) % 360); return hues.get(tag); };
  return make("div", { className: "sentence" }, ...words.map((word, i) => make("span", { vars: { "--hue": hueOf(tags[i]) } }, String(word), make("small", {}, String(tags[i])))));
}

function loads(answer) {
  const series = Array.isArray(answer.forecast) ? { "": answer.forecast } : answer.forecast;
  const pick = (part, name) => part && (Array.isArray(part) ? part : part[name]);
  return Object.entries(series).flatMap(([name, values]) => {
    const low = pick(answer.low, name), high = pick(answer.high, name), times = answer.times || values.map((_, i) => `+${i + 1}`);
    const rows = values.map((value, i) => [times[i], short(value), ...(low ? [short(low[i]), short(high[i])] : [])]);
    const heads = ["Step", "Forecast", ...(low ? ["Low", "High"] : [])];
    return [...(name ? [make("h2", {}, name)] : []), chart(values, low, high, times), make("details", {}, make("summary", {}, "As a table"), table(heads, rows))];
  });
}

// Ticks at round numbers.
function ticksOf(least, most) {
  const step = 10 ** Math.floor(Math.log10((most - least) / 3 || 1));
  const wide = [1, 2, 5, 10].map((factor) => factor * step).find((one) => (most - least) / one <= 5);
  const first = Math.ceil(least / wide);
  return Array.from({ length: Math.floor(most / wide) - first + 1 }, (_, i) => +((first + i) * wide).toPrecision(12));
}

function chart(values, low, high, times) {
  const width = Math.max(280, find("answer").clientWidth || 640), height = width < 480 ? 220 : 280;
  const all = [...values, ...(low || []), ...(high || [])], spread = Math.max(...all) - Math.min(...all) || 1;
  const least = Math.min(...all) - 0.05 * spread, most = Math.max(...all) + 0.05 * spread, last = Math.max(1, values.length - 1);
  const ticks = ticksOf(least, most), left = 14 + 7.5 * Math.max(...ticks.map((tick) => short(tick).length)), right = width - 10, bottom = height - 26;
  const x = (i) => left + (right - left) * (values.length > 1 ? i / last : 0.5), y = (value) => 8 + (bottom - 8) * (most - value) / (most - least);
  const path = (points) => points.map(([i, value], n) => `${n ? "L" : "M"}${x(i).toFixed(1)} ${y(value).toFixed(1)}`).join("");
  const node = draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Forecast of ${values.length} steps from ${short(values[0])} to ${short(values.at(-1))}` });
  for (const tick of ticks) node.append(draw("line", { class: "grid", x1: left, x2: right, y1: y(tick), y2: y(tick) }), draw("text", { x: left - 6, y: y(tick) + 4, "text-anchor": "end" }, short(tick)));
  const n_names = Math.min(values.length, Math.max(2, Math.floor((right - left) / 150)));
  for (let n = 0; n < n_names; n++) {
    const i = n_names > 1 ? Math.round(n * last / (n_names - 1)) : 0, end = n === 0 ? "start" : n === n_names - 1 ? "end" : "middle";
    node.append(draw("text", { x: x(i), y: height - 6, "text-anchor": values.length > 1 ? end : "middle" }, times[i].replace(/:00([+-]\d\d:\d\d)?$/, "")));
  }
  if (low) node.append(draw("path", { class: "band", d: `${path(high.map((value, i) => [i, value]))}L${path(low.map((value, i) => [i, value]).reverse()).slice(1)}Z` }));
  node.append(draw("path", { class: "line", d: path(values.map((value, i) => [i, value])) }));
  if (values.length <= 48) values.forEach((value, i) => node.append(draw("circle", { cx: x(i), cy: y(value), r: 3 }, draw("title", {}, `${times[i]}: ${short(value)}`))));
  return node;
}

// --- what happens --------------------------------------------------------------------------------

function showCommand() {
  let body;
  try { body = JSON.stringify(form.read()); } catch { return; }
  const quoted = body.replaceAll("'", "'\\''"), path = models.length > 1 ? pathOf("predict") : "predict";
  const token = find("gate").hidden ? "" : ` -H "Authorization: Bearer $TOKEN"`;
  find("curl").textContent = `curl ${location.origin}/${path}${token} -H 'Content-Type: application/json' -d '${quoted}'`;
}

async function ask() {
  find("ask").disabled = true;
  find("status").textContent = find("error").textContent = "";
  const start = performance.now();
  try {
    const question = form.read(), answer = await request(pathOf("predict"), question);
    find("status").textContent = `${(performance.now() - start).toFixed(0)} ms`;
    find("answer").replaceChildren(...form.show(question, answer));
  } catch (error) {
    find("answer").replaceChildren();
    find("error").textContent = error.message;
  }
  find("ask").disabled = false;
}

function open(chosen) {
  model = chosen;
  document.title = find("name").textContent = model.name;
  const sizes = [model.n_labels && `${model.n_labels.toLocaleString()} labels`, model.n_features && `${model.n_features.toLocaleString()} features`];
  find("facts").textContent = [`${model.class} gives ${model.answers}`, ...sizes.filter(Boolean)].join(" · ");
  form = formOf(model);
  find("fields").replaceChildren(...form.nodes);
  showCommand();
  ask();
}

async function begin() {
  try {
    ({ models, limits } = await request("models"));
  } catch (error) {
    find("facts").textContent = error.message;
    return;
  }
  find("models").replaceChildren(...models.map(({ name }) => make("option", { value: name }, name)));
  find("choice").hidden = models.length < 2;
  const wanted = models.find(({ name }) => name === decodeURIComponent(location.hash.slice(1))) || models[0];
  find("models").value = wanted.name;
  open(wanted);
}

find("form").addEventListener("submit", (event) => { event.preventDefault(); if (model) ask(); else begin(); });
find("form").addEventListener("input", () => { if (model) showCommand(); });
find("gate").addEventListener("submit", (event) => { event.preventDefault(); begin(); });
find("models").addEventListener("change", () => { location.hash = find("models").value; open(models.find(({ name }) => name === find("models").value)); });
begin();
