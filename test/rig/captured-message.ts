export const createCapturedSource = (html: string): Buffer =>
  Buffer.from(
    [
      'Return-Path: <shop@example.org>',
      'Delivered-To: ada@example.com',
      'Subject: =?utf-8?B?R3LDvMOfZQ==?=',
      ' =?utf-8?B?ICE=?= and',
      '\tmore',
      'X-Raw: <b>é</b>',
      'Content-Type: multipart/alternative; boundary=b',
      '',
      '--b',
      'Content-Type: text/plain; charset=utf-8',
      '',
      'Grüße <b>x</b>',
      '--b',
      'Content-Type: text/html; charset=utf-8',
      'Content-Transfer-Encoding: base64',
      '',
      Buffer.from(html).toString('base64'),
      '--b--',
      '',
    ].join('\r\n'),
  );
