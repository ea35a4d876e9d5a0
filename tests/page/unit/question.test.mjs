// How far a person has seen a question.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { advance } from '../../../crates/http/ui/js/question.js';

test('what was seen grows without gaps only', () => {
  assert.equal(advance(0, 0, 500), 500);
  assert.equal(advance(500, 400, 900), 900);
  // A jump leaves a gap; going back closes it.
  assert.equal(advance(500, 700, 1200), 500);
  assert.equal(advance(500, 501, 1001), 1001);
  assert.equal(advance(900, 100, 600), 900);
  // Nothing is on display.
  assert.equal(advance(500, 500, 500), 500);
  assert.equal(advance(0, 0, -20), 0);
});
