// Pictures: the field of Pong, the drill, the chart.

import { field } from './match.js';

const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

/** The colors of the page as it is shown, asked for once and when light and dark change. */
export function palette() {
  const names = ['field', 'net', 'you', 'it', 'ball', 'soft'];
  return Object.fromEntries(names.map((name) => [name, color(name)]));
}

export function drawPong(canvas, row, colors) {
  const brush = canvas.getContext('2d');
  const scale = canvas.width / 160;
  const seen = field(row);
  const box = (x, y, width, height, fill) => {
    brush.fillStyle = fill;
    brush.fillRect(x * scale, y * scale, width * scale, height * scale);
  };
  box(0, 0, 160, 128, colors.field);
  for (let y = 2; y < 128; y += 10) box(79.25, y, 1.5, 5, colors.net);
  box(4, seen.left, 4, 24, colors.you);
  box(152, seen.right, 4, 24, colors.it);
  brush.globalAlpha = seen.pause > 0 ? 0.45 : 1;
  box(seen.x, seen.y, 6, 6, colors.ball);
  brush.globalAlpha = 1;
}

const [SHINE, SHINE_AIR] = [360, 365];

export function drawDrill(canvas, { player }, colors) {
  const brush = canvas.getContext('2d');
  const scale = canvas.width / 190;
  const x = (at) => canvas.width / 2 + at * scale;
  const ground = canvas.height - 9 * scale;
  brush.fillStyle = colors.field;
  brush.fillRect(0, 0, canvas.width, canvas.height);
  brush.fillStyle = colors.net;
  brush.fillRect(x(-86), ground, 172 * scale, 3 * scale);
  [player[1], player[0]].forEach((one, i) => {
    const [at, top] = [x(one.x), ground - one.y * scale];
    brush.fillStyle = i ? colors.it : colors.you;
    brush.beginPath();
    brush.roundRect(at - 3 * scale, top - 14 * scale, 6 * scale, 14 * scale, 3 * scale);
    brush.fill();
    brush.fillStyle = colors.ball;
    brush.fillRect(at + (one.facing > 0 ? 0.5 : -2) * scale, top - 11.5 * scale, 1.5 * scale, 1.5 * scale);
    if (one.action_state !== SHINE && one.action_state !== SHINE_AIR) return;
    brush.strokeStyle = colors.ball;
    brush.lineWidth = scale;
    brush.beginPath();
    for (let corner = 0; corner <= 6; corner++) {
      const angle = (corner * Math.PI) / 3;
      brush.lineTo(at + 11 * scale * Math.cos(angle), top - 7 * scale + 11 * scale * Math.sin(angle));
    }
    brush.stroke();
  });
  brush.fillStyle = colors.ball;
  brush.font = `${5 * scale}px system-ui, sans-serif`;
  brush.fillText(`${Math.round(player[1].percent)} %`, x(player[1].x) - 4 * scale, ground + 8 * scale);
}

/** points: of the policy less the visitor's, after each piece. */
export function drawChart(svg, points, seconds) {
  const [width, height, left, bottom] = [480, 200, 34, 22];
  const most = Math.max(5, ...points.map(Math.abs));
  const y = (value) => (height - bottom) / 2 - (value / most) * ((height - bottom) / 2 - 10);
  const x = (i) => left + (i / Math.max(points.length, 30)) * (width - left - 8);
  const label = (at, top, text, anchor) => `<text x="${at}" y="${top}" text-anchor="${anchor}">${text}</text>`;
  const end = Math.max(points.length, 30) * seconds;
  svg.innerHTML = `<line class="zero" x1="${left}" x2="${width - 8}" y1="${y(0)}" y2="${y(0)}"/>` +
    label(left - 6, y(most) + 5, `+${most}`, 'end') + label(left - 6, y(0) + 5, '0', 'end') + label(left - 6, y(-most) + 5, `&minus;${most}`, 'end') +
    label(left, height - 4, '0 s', 'start') + label(width - 8, height - 4, `${end} s`, 'end') +
    `<polyline class="ahead" points="${[0, ...points].map((value, i) => `${x(i).toFixed(1)},${y(value).toFixed(1)}`).join(' ')}"/>`;
}
