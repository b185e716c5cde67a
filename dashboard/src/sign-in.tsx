/** The way in: the password, or a word on where the one-time link is found. */
import { Button, Center, Loader, Paper, PasswordInput, Stack, Text, Title } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import { useLocation } from 'wouter';
import { signIn as askIn } from './api/session';
import { Failure } from './parts/states';

/** Signs in by the link of the address bar, once, and goes on to the pages or to the sign-in with the reason. */
export function SignInByLink({ link }: { readonly link: string }) {
  const queries = useQueryClient();
  const [, navigate] = useLocation();
  const begun = useRef(false);
  useEffect(() => {
    if (begun.current) return;
    begun.current = true;
    askIn({ link }).then(
      () => {
        void queries.resetQueries({ queryKey: ['session'] });
        navigate('/', { replace: true });
      },
      () => navigate('/?refused=link', { replace: true }),
    );
  }, [link, navigate, queries]);
  return (
    <Center mih="40vh">
      <Loader aria-label="Signing in" />
    </Center>
  );
}

export function SignIn({ reason }: { readonly reason: string }) {
  const queries = useQueryClient();
  const [password, setPassword] = useState('');
  const signIn = useMutation({
    mutationFn: () => askIn({ password }),
    onSuccess: () => queries.invalidateQueries(),
  });
  return (
    <Center component="main" mih="100vh" p="md">
      <Paper withBorder p="lg" w="100%" maw="26rem">
        <form
          onSubmit={(event) => {
            event.preventDefault();
            signIn.mutate();
          }}
        >
          <Stack>
            <Title order={1} size="h2">
              Postrider
            </Title>
            <Text>{reason}</Text>
            <PasswordInput
              label="Operator password"
              description="The value of POSTRIDER_OPERATOR_PASSWORD. Where none is set, open the link that the service printed at its start."
              autoComplete="current-password"
              value={password}
              onChange={(event) => setPassword(event.currentTarget.value)}
              visibilityToggleButtonProps={{ 'aria-label': 'Show the password' }}
            />
            {signIn.isError ? <Failure error={signIn.error} /> : null}
            <Button type="submit" loading={signIn.isPending} disabled={password === ''}>
              Sign in
            </Button>
          </Stack>
        </form>
      </Paper>
    </Center>
  );
}
