import { describe, expect, it } from 'vitest';
import { findProviderByHost } from '../../../src/providers/providers.ts';
import { SES } from '../../../src/providers/ses.ts';

describe('the relay profile of Amazon SES', () => {
  it.each([
    'email-smtp.eu-west-1.amazonaws.com',
    'email-smtp.us-gov-west-1.amazonaws.com',
    'email-smtp-fips.us-east-1.amazonaws.com',
    'vpce-0d1f.email-smtp.us-west-2.vpce.amazonaws.com',
  ])('the host %s is recognized', (host) => {
    expect(findProviderByHost(host)?.name).toBe('ses');
  });

  it.each([
    'email-smtp.amazonaws.com',
    'email-smtp.eu-west-1.amazonaws.com.example.org',
    'inbound-smtp.eu-west-1.amazonaws.com',
    'xemail-smtp.eu-west-1.amazonaws.com',
    'email-smtp.a.b.amazonaws.com',
  ])('the host %s is not recognized', (host) => {
    expect(findProviderByHost(host)).toBeNull();
  });

  it('Date and Message-ID are not signed, because Amazon SES replaces them', () => {
    expect(SES.relay?.rewrittenFields).toEqual(['date', 'message-id']);
  });
});
