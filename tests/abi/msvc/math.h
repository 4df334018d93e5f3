/* See stdio.h. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif
float sinf(float x);
float cosf(float x);
float fabsf(float x);
float sqrtf(float x);
float fminf(float a, float b);
float fmaxf(float a, float b);
double sin(double x);
double cos(double x);
double fabs(double x);
double sqrt(double x);
#ifdef __cplusplus
}
#endif
