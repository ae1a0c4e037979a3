
"use strict";
const find = (id) => document.getElementById(id);
const make = (tag, text, kind) => Object.assign(document.createElement(tag), { textContent: text, className: kind || "" });
let model, takesText;

function question() {
  return takesText ? { texts: [find("question").value], k: 10, probabilities: model.probabilities } : JSON.parse(find("question").value);
}

function showCommand() {
  let body;
  try { body = JSON.stringify(question()); } catch { return; }
  const quoted = body.replaceAll("'", "'\\''");
  const token = find("gate").hidden ? "" : ` -H "Authorization: Bearer $TOKEN"`;
  find("curl").textContent = `curl ${location.origin}/predict${token} -H 'Content-Type: application/json' -d '${quoted}'`;
}

// One line for each label, as long as its score is beside the largest.
function ranking({ labels, scores, probabilities, empty }) {
  if (empty) return make("p", "no text, hence no labels");
  const values = scores || probabilities, table = make("table", "");
  const top = Math.max(...values), least = Math.min(...values, 0);
  labels.forEach((label, i) => {
    const name = make("td", String(label), "bar");
    name.style.backgroundSize = `${100 * (values[i] - least) / (top - least || 1)}% 100%`;
    const line = make("tr", "");
    line.append(name, make("td", values[i].toPrecision(3), "number"));
    table.append(line);
  });
  return table;
}

function show(answer) {
  const found = answer.predictions;
  const isRanking = found && found.every((one) => one.labels && (one.scores || one.probabilities));
  find("answer").replaceChildren(...(isRanking ? found.map(ranking) : [make("pre", JSON.stringify(answer, null, 1))]));
}

async function request(path, options) {
  const headers = { "Content-Type": "application/json" };
  if (find("token").value) headers.Authorization = `Bearer ${find("token").value}`;
  const response = await fetch(path, { ...options, headers });
  if (response.status === 401) find("gate").hidden = false;
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error);
  return answer;
}

async function ask() {
  find("ask").disabled = true;
  find("status").textContent = "";
  const start = performance.now();
  try {
    show(await request("predict", { method: "POST", body: JSON.stringify(question()) }));
    find("status").textContent = `${(performance.now() - start).toFixed(0)} ms`;
  } catch (error) {
    find("answer").replaceChildren(make("div", error.message, "bad"));
  }
  find("ask").disabled = false;
}

async function begin() {
  try {
    model = await request("model");
  } catch (error) {
    find("facts").textContent = error.message;
    return;
  }
  takesText = "texts" in model.example;
  document.title = find("name").textContent = model.name;
  const sizes = [model.n_labels && `${model.n_labels.toLocaleString()} labels`, model.n_features && `${model.n_features.toLocaleString()} features`];
  find("facts").textContent = [`${model.class} gives ${model.answers}`, ...sizes.filter(Boolean)].join(" · ");
  find("what").textContent = takesText ? "Text" : "Question (JSON)";
  find("question").classList.toggle("code", !takesText);
  find("question").value = takesText ? model.example.texts[0] : JSON.stringify(model.example, null, 1);
  showCommand();
  ask();
}

find("ask").addEventListener("click", () => model ? ask() : begin());
find("gate").addEventListener("submit", (event) => { event.preventDefault(); begin(); });
find("question").addEventListener("input", () => { if (model) showCommand(); });
find("question").addEventListener("keydown", (event) => { if (model && event.key === "Enter" && (event.ctrlKey || event.metaKey)) ask(); });
begin();
